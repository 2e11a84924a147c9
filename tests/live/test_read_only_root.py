"""The whole product, embedded stores included, where nothing can be written but its folder of data and /tmp.

`make test` runs every other test of this folder in the same way. Where the machine does not permit it, these fail.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import StartService
from tests.live.read_only_root import ASKED, on_read_only_root, refusal
from tests.live.service import ROOT
from tests.waiting import wait_until


def test_read_only_root__this_machine__permits_it() -> None:
    assert refusal() == ""


def test_read_only_root__a_file_in_the_code_and_elsewhere__cannot_be_written(tmp_path: Path) -> None:
    for place in (ROOT / "written", Path("/usr/written")):
        command = on_read_only_root(tmp_path / "var", ["touch", str(place)])
        touched = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert "Read-only file system" in touched.stderr

    subprocess.run(on_read_only_root(tmp_path / "var", ["touch", str(tmp_path / "var" / "written")]), check=True)


def test_service__on_a_read_only_root_with_embedded_stores__serves_records_and_stops(
    start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ASKED, "1")
    service = start_service()
    client = service.openai(max_retries=0, default_headers={"x-svc-session-id": "read-only"})
    answer = client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])

    assert answer.choices[0].message.content == "Hello"
    wait_until(lambda: service.manage("sessions/read-only").status_code == 200, what="the session in the request log")
    wait_until(lambda: service.pid("celery"), what="celery")
    # The engine's temporary files are among its own, where nothing of a killed one stays.
    killed = service.kill("engine")
    service.wait_for_successor("engine", killed)
    wait_until(lambda: service.manage("sessions/read-only").status_code == 200, what="the figures again")
    assert (service.var_dir / "clickhouse" / "temporary").is_dir()
    assert "Read-only file system" not in service.log
    assert service.stop() == 0
