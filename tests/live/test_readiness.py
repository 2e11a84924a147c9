"""`/readyz` reports whether a host should get traffic, and changes at once and before the socket closes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
import requests

from tests.gateway.service import free_port
from tests.live.conftest import StartService
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

# The stop does not wait this long: a second signal ends it.
LONG_TIMEOUTS = {"PRESTOP_SECONDS": "600"}


def ready(base_url: str, key: str = "") -> requests.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return requests.get(f"{base_url}/readyz", headers=headers, timeout=TIMEOUT_SECONDS)


def says(base_url: str, status: int, failing: list[str]) -> bool:
    try:
        answer = ready(base_url)
    except requests.ConnectionError:
        return False
    return answer.status_code == status and answer.json()["failing"] == failing


def complete(service: LiveService) -> openai.types.chat.ChatCompletion:
    return service.openai(max_retries=0).chat.completions.create(
        model="sandbox/echo", messages=[{"role": "user", "content": "Still there?"}]
    )


def test_readyz__serving__ready_and_details_for_those_with_the_scope(live_service: LiveService) -> None:
    wait_until(lambda: says(live_service.base_url, 200, []), what="a host that is ready")

    # A worker names the tables of the analytics store until it has seen them.
    wait_until(
        lambda: ready(live_service.base_url).json() == {"status": "ready", "failing": []}, what="nothing missing"
    )
    assert ready(live_service.base_url).headers["cache-control"] == "no-store"

    def details() -> dict[str, Any] | None:
        shown: dict[str, Any] = ready(live_service.base_url, live_service.api_key).json()
        is_whole = "checks" in shown and "pending" not in shown
        return shown if is_whole and len(shown["host"].get("stores", ())) == 3 else None

    # A worker that does not know the key yet looks it up, and shows more the next time.
    shown = wait_until(details, what="details for a key with scope manage")
    assert set(shown["checks"].values()) == {"passed"}
    assert set(shown["host"]) == {"stores", "disk", "spool", "children", "alarms"}
    assert set(shown["host"]["stores"]) == {"database", "redis", "analytics"}
    assert shown["host"]["children"]["shipper"][0] is True
    assert "checks" not in ready(live_service.base_url, "svc_unknown").json()


@pytest.mark.parametrize("role", ["engine", "redis"])
def test_readyz__store_hangs__host_stays_in(live_service: LiveService, role: str) -> None:
    wait_until(lambda: says(live_service.base_url, 200, []), what="a host that is ready")
    pid = wait_until(lambda: live_service.pid(role))
    os.kill(pid, signal.SIGSTOP)
    try:
        assert ready(live_service.base_url).status_code == 200
        assert complete(live_service).choices
    finally:
        os.kill(pid, signal.SIGCONT)


def test_stop__prestop_seconds__not_ready_first_and_whoever_comes_is_served(start_service: StartService) -> None:
    service = start_service({**LONG_TIMEOUTS, "WEB_WORKERS": "2"})
    wait_until(lambda: says(service.base_url, 200, []), what="a host that is ready")

    service.process.send_signal(signal.SIGTERM)
    # Every worker answers 503, also one that has to start meanwhile.
    wait_until(lambda: says(service.base_url, 503, ["draining"]), what="a host that is not ready")
    service.wait_for_successor("web-1", service.kill("web-1"))
    for _ in range(10):
        wait_until(lambda: says(service.base_url, 503, ["draining"]), what="a host that is not ready")
    assert complete(service).choices[0].message.content == "Still there?"
    # `connection: close` makes a client with a persistent connection reconnect, perhaps to another host.
    assert ready(service.base_url).headers["connection"] == "close"

    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(START_SECONDS) == 0
    assert "child.killed" not in service.log


def test_worker__sigterm_before_it_knows_of_a_stop__ends_at_once(start_service: StartService) -> None:
    """A worker that is starting while the service stops does not know of the stop when SIGTERM comes. One that is up,
    in a service that is not stopping, does not either."""
    service = start_service(LONG_TIMEOUTS)
    pid = wait_until(lambda: service.pid("web-1"))

    os.kill(pid, signal.SIGTERM)

    service.wait_for_successor("web-1", pid)
    wait_until(lambda: says(service.base_url, 200, []), what="a host that is ready")


@contextmanager
def lone_worker(var_dir: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    with var_dir.with_name("uvicorn.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "config.asgi:application", "--port", str(port)],
            cwd=ROOT,
            env={**minimal_environment(var_dir), **LONG_TIMEOUTS},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def test_lone_worker__before_migrations_and_after_sigterm__not_ready_and_says_why(tmp_path: Path) -> None:
    var_dir = tmp_path / "var"
    with lone_worker(var_dir) as (process, base_url):
        wait_until(
            lambda: says(base_url, 503, ["configuration", "migrations"]),
            seconds=START_SECONDS,
            what="a worker whose tables are missing",
        )

        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
            cwd=ROOT,
            env=minimal_environment(var_dir),
            check=True,
        )
        wait_until(lambda: says(base_url, 200, []), what="a worker whose tables are there")

        process.terminate()
        wait_until(lambda: says(base_url, 503, ["draining"]), what="a worker that is about to stop")
        assert requests.get(f"{base_url}/healthz", timeout=TIMEOUT_SECONDS).status_code == 200
        process.terminate()
        process.wait(START_SECONDS)
