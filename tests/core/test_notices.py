from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from core.processes.notices import NoticeWriter, read_notice, read_notices
from tests.live.service import ROOT
from tests.small_disk import small_disk


def test_notice__put_again__shorter_and_longer_ones_are_read_whole(tmp_path: Path) -> None:
    writer = NoticeWriter(tmp_path, "web-1", max_bytes=100)
    for message in (b"first", b"x" * 100, b"", b"last"):
        writer.put(message)
        found = read_notice(tmp_path, "web-1")
        assert found is not None
        assert found.message == message
    # A message that is too long leaves the previous one in place.
    writer.put(b"x" * 101)
    found = read_notice(tmp_path, "web-1")
    assert found is not None
    assert found.message == b"last"

    writer.close()
    assert read_notice(tmp_path, "web-1") is None


def test_notice__writer_died__is_not_listed_and_taken_away(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from core.processes.notices import NoticeWriter
NoticeWriter(Path({str(tmp_path)!r}), "web-dead", max_bytes=10).put(b"gone")
import os
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    writer = NoticeWriter(tmp_path, "web-alive", max_bytes=10)
    writer.put(b"here")
    dead = read_notice(tmp_path, "web-dead")
    assert dead is not None
    assert not dead.is_alive

    assert [(one.name, one.message) for one in read_notices(tmp_path, "web-")] == [("web-alive", b"here")]
    assert read_notice(tmp_path, "web-dead") is None
    writer.close()


def test_notice__damaged__is_none(tmp_path: Path) -> None:
    (tmp_path / "web-1.notice").write_bytes(b"PGN1 of somebody else")
    assert read_notice(tmp_path, "web-1") is None


def test_notice__disk_full_after_the_first__is_replaced_all_the_same(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        writer = NoticeWriter(disk.path, "web-1", max_bytes=1000)
        writer.put(b"before")
        disk.fill()
        writer.put(b"x" * 1000)
        found = read_notice(disk.path, "web-1")
        late = NoticeWriter(disk.path, "web-2", max_bytes=100_000)
        late.put(b"no room")
        assert read_notice(disk.path, "web-2") is None
        disk.free()
        late.put(b"room again")
        again = read_notice(disk.path, "web-2")
        writer.close()
        late.close()

    assert found is not None
    assert found.message == b"x" * 1000
    assert again is not None
    assert again.message == b"room again"
