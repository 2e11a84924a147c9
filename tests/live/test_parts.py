"""Each part of `serve` is started on its own, as another deployment would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from openai import OpenAI

from tests.live.conftest import StartService
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until


@contextmanager
def _running(var_dir: Path, *command: str) -> Iterator[psutil.Process]:
    with (var_dir.parent / "part.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=minimal_environment(var_dir), stdout=log, stderr=log
        )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(timeout=TIMEOUT_SECONDS)


def _port(process: psutil.Process) -> int | None:
    """Returns the port that the process chose, once it listens; None before."""
    listening = [found.laddr.port for found in process.net_connections("tcp") if found.status == psutil.CONN_LISTEN]
    return listening[0] if listening else None


@pytest.mark.parametrize(
    "server",
    [
        ["-m", "uvicorn", "config.asgi:application", "--loop", "uvloop", "--http", "httptools", "--port"],
        ["manage.py", "runserver", "--noreload"],
    ],
    ids=["uvicorn", "daphne"],
)
def test_web__other_server_on_the_same_services__answers_and_streams(
    live_service: LiveService, server: list[str]
) -> None:
    with _running(live_service.var_dir, *server, "0") as process:
        port = wait_until(lambda: _port(process), seconds=START_SECONDS, what="the server to listen")
        client = OpenAI(base_url=f"http://127.0.0.1:{port}/api/gateway/v1", api_key=live_service.api_key)

        whole = client.chat.completions.create(
            model="sandbox/echo", messages=[{"role": "user", "content": "Hello you"}]
        )
        stream = client.chat.completions.create(
            model="sandbox/echo", messages=[{"role": "user", "content": "Hello you"}], stream=True
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)

    assert whole.choices[0].message.content == text == "Hello you"


def test_shipper__started_later__ships_what_waited(start_service: StartService) -> None:
    service = start_service(arguments=["--without", "shipper", "--without", "celery"])
    client = service.openai(default_headers={"x-svc-session-id": "waited"})
    client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])
    assert service.pid("shipper") is None
    assert service.manage("sessions/waited").status_code == 404

    with _running(service.var_dir, "manage.py", "ship_records"):
        wait_until(lambda: service.manage("sessions/waited").status_code == 200, seconds=START_SECONDS)

    assert service.stop() == 0
