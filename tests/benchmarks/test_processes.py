from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks import processes
from tests.services import START_SECONDS

# The child writes as long as it lives, and ignores SIGTERM.
_WRITER = """
import itertools, pathlib, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for number in itertools.count():
    folder = pathlib.Path(sys.argv[1], "written", str(number % 50))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(number % 1000)).write_text("x")
"""
# The parent is like a supervisor: its child has a session of its own.
_PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def started(folder: Path) -> tuple[subprocess.Popen[bytes], psutil.Process]:
    log = folder.parent / "output.log"
    process = processes.start([sys.executable, "-c", _PARENT, _WRITER, str(folder)], log=log)
    deadline = time.monotonic() + START_SECONDS
    while not (log.read_text().strip() and (folder / "written").exists()) and time.monotonic() < deadline:
        assert process.poll() is None
    return process, psutil.Process(int(log.read_text()))


def test_stop__returns_when_nothing_writes_any_more(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    process, child = started(folder)

    processes.stop(process)

    shutil.rmtree(folder)
    assert processes.is_gone(child)
    assert not folder.exists()


def test_stop__interrupted__still_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, child = started(tmp_path / "workspace")
    wait = process.wait

    def interrupted(timeout: float | None = None) -> int:
        if timeout is not None:
            raise KeyboardInterrupt
        return wait()

    monkeypatch.setattr(process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        processes.stop(process)

    assert processes.is_gone(child)


def test_cpu_seconds__adds_the_clocks_and_leaves_out_what_has_ended() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    gone = psutil.Process(ended.pid)
    ended.wait()

    before = time.process_time()
    used = processes.cpu_seconds([psutil.Process(), gone])

    assert before <= used <= time.process_time()
