"""Each part of `serve` started on its own, as a deployment by other means would."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from openai import OpenAI

from tests.live.conftest import StartService
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.live.waiting import wait_for
from tests.patience import PATIENCE_SECONDS


@contextmanager
def _running(var_dir: Path, *command: str) -> Iterator[None]:
    with (var_dir.parent / "part.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=minimal_environment(var_dir), stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _is_up(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_SECONDS).status_code == 200
    except requests.ConnectionError:
        return False


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
    port = _free_port()
    with _running(live_service.var_dir, *server, str(port)):
        wait_for(lambda: _is_up(port), what="the server to answer")
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
        wait_for(lambda: service.manage("sessions/waited").status_code == 200)

    assert service.stop() == 0
