from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import openai
import psutil
import pytest
import redis

from tests.live.conftest import StartService
from tests.live.prompts import WORKERS, client_ports
from tests.live.service import ROLES, ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until


def _complete(service: LiveService, session: str) -> bool:
    client = service.openai(max_retries=5, default_headers={"x-svc-session-id": session})
    try:
        answer = client.chat.completions.create(
            model="sandbox/echo", messages=[{"role": "user", "content": "Still there?"}]
        )
    except openai.APIError:
        return False
    return answer.choices[0].message.content == "Still there?"


def _works(service: LiveService, role: str, pid: int) -> bool:
    """For processes whose work shows neither in an answer nor in its record."""
    if role == "redis":
        return _redis_answers(service)
    if role == "celery":
        ask = [sys.executable, "-m", "celery", "-A", "config", "inspect", "ping"]
        return not subprocess.run(
            ask, cwd=ROOT, env=minimal_environment(service.var_dir), capture_output=True
        ).returncode
    return role not in WORKERS or _web_answers(service, pid)


def _redis_answers(service: LiveService) -> bool:
    address = (service.var_dir / "run" / "redis.url").read_text(encoding="utf-8").strip()
    with redis.Redis.from_url(address) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


def _web_answers(service: LiveService, pid: int) -> bool:
    """Returns whether this worker answered. A connection may reach another worker, which proves nothing yet."""
    address = urlsplit(service.base_url)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=TIMEOUT_SECONDS) as asking:
        asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return asking.recv(1) == b"H" and asking.getsockname()[1] in client_ports(pid)


def _is_listed(service: LiveService, session: str) -> bool:
    response = service.manage("sessions", name_pattern=session)
    return response.status_code == 200 and response.json()["count"] == 1


@pytest.mark.parametrize("role", ROLES)
def test_child__killed__is_restarted_and_the_service_works(live_service: LiveService, role: str) -> None:
    session = f"restart-{uuid.uuid4().hex}"
    live_service.start_on_demand()
    killed = live_service.kill(role)

    successor = live_service.wait_for_successor(role, killed)

    assert wait_until(lambda: psutil.pid_exists(successor))
    # The successor is a whole process with its imports, which have to finish before the next test uses it.
    wait_until(lambda: _works(live_service, role, successor), seconds=START_SECONDS, what=f"{role} to work again")
    wait_until(lambda: _complete(live_service, session), what="an answer after the restart")
    wait_until(lambda: _is_listed(live_service, session), seconds=60, what="the record after the restart")
    assert f"child.restarted role={role} exit_code=-9" in live_service.log


def test_supervisor__killed__leaves_no_child_and_the_next_start_works(start_service: StartService) -> None:
    # The same service shows that recording leaves the processor to web workers, since a start is expensive.
    service = start_service({"WEB_WORKERS": "2", "BACKGROUND_NICENESS": "", "ALLOW_PRIVATE_UPSTREAMS": "1"})
    service.start_on_demand()
    children = {role: wait_until(partial(service.pid, role)) for role in ROLES}
    own = psutil.Process().nice()
    more = min(10, 19 - own)  # The suite may run with a niceness of its own, and 19 is the most that there is.
    expected = {role: more if role in ("engine", "shipper", "exporter") else 0 for role in ROLES}
    # A process that has just been forked is about to yield.
    wait_until(
        lambda: {role: psutil.Process(pid).nice() - own for role, pid in children.items()} == expected,
        what=f"processes with a niceness of {expected}",
    )

    service.kill_supervisor()

    for pid in children.values():
        wait_until(partial(_has_ended, pid), what=f"the end of {pid}")
    again = start_service()
    assert again.stop() == 0


def _has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_run_folder__readable_by_its_owner_only(live_service: LiveService) -> None:
    files = [Path(folder) / name for folder, _, names in os.walk(live_service.var_dir) for name in names]

    open_to_others = [file for file in files if _open_to_others(file)]

    assert files
    assert open_to_others == []


def _open_to_others(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & 0o077)
    except FileNotFoundError:
        return False  # The file was removed after it was listed.
