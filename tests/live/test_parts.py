from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from openai import OpenAI

from gateway.consumers import SURFACES
from tests.live.conftest import StartService
from tests.live.prompts import Project, new_projects
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.night import cases
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
    listening = [found.laddr.port for found in process.net_connections("tcp") if found.status == psutil.CONN_LISTEN]
    return listening[0] if listening else None


_WEB_WORKER = [
    "--http",
    "config.web.protocol:BoundedProtocol",
    "--ws",
    "none",
    "--no-proxy-headers",
    "--lifespan",
    "off",
]

_OTHER_SERVERS = {
    "uvicorn": ["-m", "uvicorn", "config.asgi:application", "--loop", "uvloop", "--http", "httptools", "--port"],
    "daphne": ["-m", "daphne", "config.asgi:application", "-p"],
    "runserver": ["manage.py", "runserver", "--noreload"],
}


def test_surfaces__through_daphne_and_through_the_web_worker__reach_the_same_consumers(tmp_path: Path) -> None:
    application = "tests.config.consumer_names:application"
    routed = _consumers(tmp_path / "daphne", "-m", "daphne", application, "-p")
    handed_over = _consumers(tmp_path / "worker", "-m", "uvicorn", application, *_WEB_WORKER, "--port")
    expected = {surface.path: surface.surface.operation for surface in SURFACES}

    assert routed == {path: {"operation": name, "by_router": True} for path, name in expected.items()}
    assert handed_over == {path: {"operation": name, "by_router": False} for path, name in expected.items()}


def _consumers(var_dir: Path, *server: str) -> dict[str, dict[str, Any]]:
    with _running(var_dir, *server, "0") as process:
        port = wait_until(lambda: _port(process), seconds=START_SECONDS, what="the server to listen")
        root = f"http://127.0.0.1:{port}/api/gateway/v1"
        return {surface.path: requests.post(f"{root}/{surface.path}", timeout=30).json() for surface in SURFACES}


@pytest.fixture(scope="module")
def project(live_service: LiveService) -> Project:
    (found,) = new_projects(live_service, ["other servers"])
    found.set(agent_model="sandbox/echo")
    return found


@pytest.fixture(
    scope="module",
    params=cases(list(_OTHER_SERVERS), by_day=["daphne"]),
)
def root(live_service: LiveService, request: pytest.FixtureRequest) -> Iterator[str]:
    with _running(live_service.var_dir, *_OTHER_SERVERS[request.param], "0") as process:
        port = wait_until(lambda: _port(process), seconds=START_SECONDS, what="the server to listen")
        yield f"http://127.0.0.1:{port}"


def _client(root: str, project: Project) -> OpenAI:
    return OpenAI(base_url=f"{root}/api/gateway/v1", api_key=project.api_key)


def test_web__other_server__answers_and_streams(root: str, project: Project) -> None:
    client, hello = _client(root, project), "Hello you"

    whole = client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": hello}])
    stream = client.chat.completions.create(
        model="sandbox/echo", messages=[{"role": "user", "content": hello}], stream=True
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)

    assert whole.choices[0].message.content == text == hello


def test_web__other_server_whose_client_leaves_a_stream__ends_the_request(root: str, project: Project) -> None:
    def in_flight() -> int:
        count: int = requests.get(f"{root}/healthz", timeout=30).json()["in_flight"]
        return count

    stream = _client(root, project).chat.completions.create(
        model="sandbox/hang-mid-stream", messages=[{"role": "user", "content": "Hello you, who leave"}], stream=True
    )
    next(iter(stream))
    assert in_flight() == 1
    stream.close()

    wait_until(lambda: in_flight() == 0, what="the request to end")


def test_web__other_server__is_ready_and_serves_pages_and_chats(root: str, project: Project) -> None:
    wait_until(lambda: requests.get(f"{root}/readyz", timeout=30).status_code == 200, what="the server to be ready")
    page = requests.get(f"{root}/admin/login/", timeout=30)
    style = re.search(r'href="(/static/[^"]+[.]css)"', page.text)
    headers = {"Authorization": f"Bearer {project.api_key}", "X-Project-Id": project.project_id}
    chat = requests.post(f"{root}/api/agent/chat", headers=headers, json={"message": "Hello"}, timeout=60)

    assert page.status_code == 200
    assert style is not None
    assert requests.get(root + style.group(1), timeout=30).headers["content-type"].startswith("text/css")
    assert chat.headers["content-type"].startswith("text/event-stream")
    assert chat.content.endswith(b'data: {"type":"done"}\n\n')


def test_shipper__started_later__ships_what_waited(start_service: StartService) -> None:
    service = start_service({"INSERTER": "1"}, arguments=["--without", "shipper", "--without", "celery"])
    client = service.openai(default_headers={"x-svc-session-id": "waited"})
    client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])
    assert service.pid("shipper") is None
    assert service.manage("sessions/waited").status_code == 404

    up = ("prompt_gateway_child_up", frozenset({("role", "inserter")}))
    wait_until(lambda: service.metrics().get(up) == 1, seconds=START_SECONDS, what="the inserter")
    with _running(service.var_dir, "manage.py", "ship_records"):
        wait_until(lambda: service.manage("sessions/waited").status_code == 200, seconds=START_SECONDS)

    assert service.stop() == 0
