from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from tests.fleet.servers import Redis, redis_cluster, redis_sentinel, redis_server
from tests.live.conftest import StartService
from tests.live.prompts import Project
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.night import cases
from tests.waiting import wait_until

_PAUSE_SECONDS = 0.05
SETTINGS = {"monthly_budget_usd": 1000, "rate_limit_enabled": True, "rate_limit_rpm": 1_000_000}


class Load:
    def __init__(self, service: LiveService) -> None:
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.answered = 0
        self.statuses: list[str] = []

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with requests.Session() as session:
            while not self._stop.wait(_PAUSE_SECONDS):
                answer = session.post(
                    f"{self._service.base_url}/api/gateway/v1/chat/completions",
                    headers={"Authorization": f"Bearer {self._service.api_key}"},
                    json={"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]},
                    timeout=30,
                )
                self.answered += answer.status_code == 200
                self.statuses += [answer.text] if answer.status_code != 200 else []


# By day test_acceptance.py loses a primary behind Sentinel.
@pytest.fixture(params=cases(["sentinel", "cluster"], by_day=["cluster"]))
def lost(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[dict[str, str], Callable[[], None]]]:
    """Yields the product's settings of Redis, and a function that kills a primary and returns when another took
    over.
    """
    if request.param == "sentinel":
        with redis_sentinel(folder / "redis") as group:
            yield {"REDIS_URL": group.url}, lambda: _replaced(group.primary(), group.wait_for_primary)
        return
    with redis_cluster(folder / "redis") as cluster, redis_server(folder / "broker") as broker:

        def replaced(*, other_than: Redis) -> None:
            wait_until(lambda: len(cluster.primaries()) == len(cluster.nodes) // 2, what="a replica to take over")
            cluster.wait_until_whole()

        environment = {"REDIS_URL": cluster.url, "CELERY_BROKER_URL": broker.url}
        yield environment, lambda: _replaced(cluster.primaries()[0], replaced)


def _replaced(primary: Redis, wait: Callable[..., object]) -> None:
    primary.kill()
    wait(other_than=primary)


def test_product__primary_killed_under_load__no_request_fails_and_all_is_as_before(
    start_service: StartService, lost: tuple[dict[str, str], Callable[[], None]]
) -> None:
    environment, lose = lost
    service = start_service({"WEB_WORKERS": "2", **environment}, empty=True)
    Project(service, service.project_id, service.api_key).set(**SETTINGS)
    with Load(service) as load:
        wait_until(lambda: load.answered > 20)
        lose()
        wait_until(lambda: _connected(service) == {"limits": 2.0, "cache": 2.0, "health": 2.0}, what="both workers")
        before = load.answered
        wait_until(lambda: load.answered > before + 20)
    ran = _tasks_run(service, environment)

    assert load.statuses == []
    wait_until(lambda: _tasks_run(service, environment) > ran, what="Celery to run tasks")
    _counts_together(service)
    # Each of the two workers says so once.
    lines = [line for line in service.log_since_start.splitlines() if "redis.away" in line]
    assert len([line for line in lines if "gateway.limits" in line]) <= 2, lines
    assert service.stop() == 0


def _counts_together(service: LiveService) -> None:
    """Ten more requests to both workers must add ten to the minute's count."""

    def grew() -> bool:
        started, used = _minute(service)
        for number in range(10):
            service.openai().chat.completions.create(
                model="sandbox/echo", messages=[{"role": "user", "content": str(number)}]
            )
        now, now_used = _minute(service)
        return now == started and now_used == used + 10

    # The minute may end in between.
    wait_until(grew, what="the count of a minute")


def _minute(service: LiveService) -> tuple[str, int]:
    minute = service.manage("usage").json()["minute"]
    return minute["start"], minute["requests"]["used"]


def _connected(service: LiveService) -> dict[str, float]:
    name = "prompt_gateway_redis_connected_workers"
    return {dict(labels)["use"]: value for (found, labels), value in service.metrics().items() if found == name}


def _tasks_run(service: LiveService, environment: dict[str, str]) -> int:
    ask = [sys.executable, "-m", "celery", "-A", "config", "inspect", "stats", "--json"]
    told = subprocess.run(
        ask,
        cwd=ROOT,
        env={**minimal_environment(service.var_dir), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return sum(sum(worker["total"].values()) for worker in json.loads(told.stdout).values()) if told.stdout else 0
