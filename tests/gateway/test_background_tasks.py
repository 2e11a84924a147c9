"""Whatever the background tasks of a worker meet, they go on, and a revoked key does not get through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from core.processes.background_tasks import Failures, keep_running
from core.processes.draining import Drain
from core.processes.notices import read_notices
from gateway.runtime.readiness import Readiness
from gateway.worker import state as worker_state
from gateway.worker.state import WorkerMonitor
from tests.gateway.breakable import ERRORS
from tests.gateway.service import GatewayService

TASKS = [
    "gateway.follow",
    "gateway.follow.prices",
    "gateway.health",
    "gateway.health.use",
    "gateway.held_records",
    "gateway.last_use",
    "gateway.limits",
    "gateway.limits.renew",
    "gateway.observation",
    "gateway.open_requests",
    # This one asks until the tables of the analytics store are there, which this worker does not have.
    "gateway.prepare.analytics",
    "gateway.refresh",
    "gateway.seeding",
]
# These tasks take an error of a connection for Redis being away, and connect again by themselves.
RECONNECT = {"gateway.follow", "gateway.health", "gateway.limits"}


class BreakableService(GatewayService):
    application = "tests.gateway.breakable:application"

    def tasks(self) -> list[str]:
        names: list[str] = self.client.get(f"{self.base_url()}/tasks").json()
        return names

    def break_tasks(self, error: str) -> list[str]:
        names: list[str] = self.client.post(f"{self.base_url()}/tasks/break/{error}").json()
        return names

    def failures(self) -> dict[str, Failures]:
        notices = read_notices(self.var / "run" / "notices", "tasks-")
        return {name: Failures(**one) for notice in notices for name, one in json.loads(notice.message).items()}


@pytest.fixture(scope="module")
def service() -> Iterator[BreakableService]:
    with BreakableService(workers=1) as started:
        # The task that prepares the worker ends when the worker is ready for traffic.
        assert started.until(started.tasks, lambda names: names == TASKS) == TASKS
        yield started


@pytest.mark.parametrize("error", ERRORS)
def test_tasks__all_meet_an_error__logged_counted_begun_again_and_a_revoked_key_is_refused(
    service: BreakableService, error: str
) -> None:
    gateway = service.new_project()
    key = service.make_key(gateway.project_id)
    request = {"model": "nowhere/none", "messages": [{"role": "user", "content": "Hello"}]}
    assert gateway.post(request, key=key).status_code != 401
    failing = set(TASKS) - (RECONNECT if error == "OSError" else set())
    before = {name: one.count for name, one in service.failures().items()}

    assert service.break_tasks(error) == TASKS

    def counted() -> set[str]:
        return {name for name, one in service.failures().items() if one.count > before.get(name, 0)}

    assert service.until(counted, failing.issubset) >= failing
    assert {service.failures()[name].error for name in failing} == {error}
    log = service.log.read_text(errors="replace")
    assert all(f"background_task.failed name={name} " in log for name in failing)
    assert f"{error}: broken by a test" in log or error == "CancelledError"
    service.revoke_key(key)
    refused = service.until(lambda: gateway.post(request, key=key).status_code, lambda status: status == 401)
    assert refused == 401
    assert service.tasks() == TASKS


async def test_preparation__error_of_the_driver__is_begun_again_until_the_worker_is_ready(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A pooler that closed a cursor once made a worker unready for its whole life, without a line in the log."""
    failing = iter([psycopg.errors.InvalidCursorName("closed"), psycopg.OperationalError("gone")])

    def migrations_are_current() -> bool:
        if (error := next(failing, None)) is not None:
            raise error
        return True

    async def load_prices() -> None:
        return

    monkeypatch.setattr(worker_state, "migrations_are_current", migrations_are_current)
    readiness = Readiness(Drain(), lambda: True)
    runtime: Any = SimpleNamespace(readiness=readiness, snapshots=SimpleNamespace(load_prices=load_prices))

    await keep_running("gateway.prepare", WorkerMonitor(runtime).prepare)

    assert readiness.migrations_current
    assert readiness.configuration_loaded
    assert caplog.text.count("background_task.failed name=gateway.prepare") == 2
