from __future__ import annotations

import os
import uuid
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.live.conftest import StartService
from tests.live.service import ROLES, LiveService
from tests.live.waiting import wait_for


def _complete(service: LiveService, session: str) -> bool:
    client = service.openai(max_retries=5, default_headers={"x-svc-session-id": session})
    answer = client.chat.completions.create(
        model="sandbox/echo", messages=[{"role": "user", "content": "Still there?"}]
    )
    return answer.choices[0].message.content == "Still there?"


def _is_listed(service: LiveService, session: str) -> bool:
    response = service.manage("sessions", name_pattern=session)
    return response.status_code == 200 and response.json()["count"] == 1


@pytest.mark.parametrize("role", ROLES)
def test_child__killed__is_restarted_and_the_service_works(live_service: LiveService, role: str) -> None:
    session = f"restart-{uuid.uuid4().hex}"
    killed = live_service.kill(role)

    successor = live_service.wait_for_successor(role, killed)

    assert wait_for(lambda: psutil.pid_exists(successor))
    wait_for(lambda: _complete(live_service, session), what="an answer after the restart")
    wait_for(lambda: _is_listed(live_service, session), seconds=60, what="the record after the restart")
    assert f"child.restarted role={role} exit_code=-9" in live_service.log


def test_supervisor__killed__leaves_no_child_and_the_next_start_works(start_service: StartService) -> None:
    service = start_service()
    children = [wait_for(partial(service.pid, role)) for role in ROLES]

    service.kill_supervisor()

    for pid in children:
        wait_for(partial(_has_ended, pid), what=f"the end of {pid}")
    again = start_service()
    assert again.stop() == 0


def _has_ended(pid: int) -> bool:
    """Gone, or a zombie that whoever inherited it has not collected yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_run_folder__readable_by_its_owner_only(live_service: LiveService) -> None:
    files = [Path(folder) / name for folder, _, names in os.walk(live_service.var_dir) for name in names]

    open_to_others = [file for file in files if file.exists() and file.stat().st_mode & 0o077]

    assert files
    assert open_to_others == []
