"""A store that hangs counts as away after a set time, for everything that reads, until it gives a sign of life.

A query may take ten minutes here and tests wait for half a minute, so that a reader that waited for the store itself
would fail.
"""

from __future__ import annotations

import io
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.clickhouse import liveness as liveness_module
from analytics.clickhouse.liveness import Liveness, liveness
from analytics.errors import AnalyticsUnavailableError
from core.models import Project
from tests.analytics.contract.endpoints import ENDPOINTS, Endpoint
from tests.analytics.engine_process import EngineProcess
from tests.factories.core import client_of
from tests.waiting import TIMEOUT_SECONDS, wait_until

ENDLESS = "SELECT count() AS number FROM numbers(1000000000000) AS n WHERE sipHash64(n.number) = 1"
READS = [endpoint for endpoint in ENDPOINTS if endpoint.store]


@dataclass(frozen=True)
class Number:
    number: int


@pytest.fixture(scope="module")
def migrated() -> list[str]:
    """The addresses of engines with tables."""
    return []


@pytest.fixture(autouse=True)
def address(engine: EngineProcess, migrated: list[str], settings: Settings) -> Iterator[None]:
    client.close()
    settings.CLICKHOUSE_URL = engine.url
    settings.CLICKHOUSE_QUERY_SECONDS = 600
    if not migrated:
        call_command("migrate_analytics", stdout=io.StringIO())
        migrated.append(engine.url)
    settings.CLICKHOUSE_SILENT_SECONDS = 1.0
    yield
    client.close()


@contextmanager
def stopped(engine: EngineProcess) -> Iterator[None]:
    engine.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        engine.process.send_signal(signal.SIGCONT)
        wait_until(answers)


def ask(sql: str = "SELECT 7 AS number") -> int:
    [row] = client.query(sql, {}, row=Number, name="ask")
    return row.number


def answers() -> bool:
    try:
        return ask() == 7
    except AnalyticsUnavailableError:
        return False


def test_reads__store_stopped__all_answer_503_and_come_back_with_it(engine: EngineProcess, project: Project) -> None:
    api: APIClient = client_of(project)
    ask()
    with stopped(engine):
        for endpoint in READS:
            _assert_unavailable(endpoint, api, project)

    assert {_call(endpoint, api, project).status_code for endpoint in READS} <= {200, 204, 404}


def _call(endpoint: Endpoint, api: APIClient, project: Project) -> Any:
    began = time.monotonic()
    answer = endpoint.call(api, project)
    assert time.monotonic() - began < TIMEOUT_SECONDS, endpoint
    return answer


def _assert_unavailable(endpoint: Endpoint, api: APIClient, project: Project) -> None:
    answer = _call(endpoint, api, project)
    assert answer.status_code == 503, endpoint
    assert answer.json()["error"]["code"] == "analytics_unavailable"
    assert int(answer.headers["Retry-After"]) > 0


def content_of(answer: Any) -> str:
    """Returns the text of a page whose panels are streamed."""
    return b"".join(answer.streaming_content).decode()


def test_admin__store_stopped__says_so_and_never_that_there_is_nothing(
    engine: EngineProcess, project: Project, admin_user: User
) -> None:
    browser = Client()
    browser.force_login(admin_user)
    with stopped(engine):
        one = content_of(browser.get(f"/admin/analytics/requests/{project.pk}/{project.pk}/"))
        listed = content_of(browser.get("/admin/analytics/requests/", {"project": str(project.pk)}))
    again = content_of(browser.get("/admin/analytics/requests/", {"project": str(project.pk)}))

    for shown in (one, listed):
        assert "The analytics store does not answer." in shown
        assert "No requests" not in shown
    assert "No requests in this range." in again


def test_query__under_way_when_the_store_stops__is_let_go(engine: EngineProcess) -> None:
    outcome = _in_background(lambda: ask(ENDLESS))
    with engine.client() as watching:
        wait_until(lambda: watching.execute("SELECT count() FROM system.processes") == [(2,)])
    with stopped(engine):
        assert isinstance(outcome(), AnalyticsUnavailableError)
        assert liveness()._open


def test_insert__store_stopped_and_circuit_open__waits_for_the_store(engine: EngineProcess) -> None:
    client.execute("CREATE TABLE IF NOT EXISTS kept (number UInt8) ENGINE = MergeTree ORDER BY number")
    with stopped(engine):
        wait_until(lambda: not answers())
        outcome = _in_background(lambda: client.insert("kept", ("number",), [(5,)], token="one"))
        with pytest.raises(AnalyticsUnavailableError):
            ask()

    assert outcome() is None
    assert ask("SELECT number FROM kept") == 5


def test_query__heavy_and_silent_in_a_store_that_lives__is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    signs: list[float] = []

    def is_alive(seconds: float) -> bool:
        signs.append(seconds)
        return True

    monkeypatch.setattr(liveness_module, "_liveness", Liveness(is_alive=is_alive, silent_seconds=lambda: 0.1))

    assert ask("SELECT toUInt8(sleep(1)) + 7 AS number") == 7
    assert signs
    assert set(signs) == {0.05}


def _in_background(call: Callable[[], Any]) -> Callable[[], Any]:
    """Returns a function that waits for the end of `call` and returns or raises its result."""
    ended: list[Any] = []

    def run() -> None:
        try:
            ended.append(call())
        except AnalyticsUnavailableError as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def outcome() -> Any:
        thread.join(TIMEOUT_SECONDS)
        assert ended, "it still waits"
        return ended[0]

    return outcome
