"""`GET /api/llm/usage`: from Redis, and from the request log where Redis has no figures."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings as configured
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.errors import AnalyticsUnavailableError
from analytics.request_log.record import SpoolEntry
from analytics.spool.writer import SpoolWriter
from core.models import Project
from gateway import viewsets as views
from gateway.limits import figures
from gateway.limits.keys import Scope, requests_key, tokens_key
from gateway.reports import limit_usage
from tests.factories.analytics import make_record, store
from tests.factories.core import make_key, make_project
from tests.factories.settings import make_settings
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/api/llm/usage"
NOW = datetime(2026, 11, 21, 12, 34, 18, tzinfo=UTC)
MINUTE = int(NOW.timestamp()) // 60


@pytest.fixture
def client(settings: Settings, tmp_path: Path) -> Iterator[redis.Redis]:
    # Figures are certain while no record waits in the spool of the host, where other tests leave some.
    settings.SPOOL_DIR = tmp_path
    with redis.Redis.from_url(configured.REDIS_URL) as client:
        yield client


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """The time at which the API is called, fixed because a month may begin while a test runs."""
    moment = datetime.now(UTC)
    monkeypatch.setattr(views, "usage_of", lambda project, session: limit_usage.usage_of(project, session, moment))
    return moment


@pytest.fixture(autouse=True)
def long_redis_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the time limit of Redis, so that it never counts as away on a busy machine."""
    monkeypatch.setattr(figures, "_TIMEOUT_SECONDS", TIMEOUT_SECONDS)


def make(**given: Any) -> Project:
    project = make_project()
    make_settings(project, **given)
    return project


def api(project: Project) -> APIClient:
    _, key = make_key(project, scopes=["manage"])
    found = APIClient()
    found.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project.pk))
    return found


def certain(client: redis.Redis, scope: Scope, **fields: Any) -> None:
    info: Any = client.info("server")
    fields_stored: dict[Any, Any] = {"since": 1, "run": info["run_id"], **fields}
    client.hset(scope.spend, mapping=fields_stored)


def spent_in_log(spool: Path, project: Project, cost: str, *, at: datetime, session: str = "", **fields: Any) -> None:
    record = make_record(
        project_id=str(project.pk),
        ts=int(at.timestamp() * 1_000_000),
        session_id=session,
        cost_known=True,
        cost_usd=cost,
        cost_output_usd=cost,
        **fields,
    )
    store(spool, SpoolEntry(record))


def test_usage__of_a_project_with_limits__is_what_redis_counts(client: redis.Redis) -> None:
    project = make(
        rate_limit_enabled=True,
        rate_limit_rpm=60,
        rate_limit_tpm=1000,
        monthly_budget_usd=Decimal(100),
        budget_hard_stop=True,
        session_budget_usd=Decimal(1),
    )
    client.set(requests_key(str(project.pk), MINUTE), 7)
    client.set(tokens_key(str(project.pk), MINUTE), 1200)
    certain(client, Scope(str(project.pk), month="2026-11"), base=20 * 10**10, after=5 * 10**10, reserved=10**12)
    held = Scope(str(project.pk), month="2026-11").reservations
    client.zadd(held, {f"a|{10**10}|1": 10**13, f"lapsed|{99 * 10**10}|1": 1})
    certain(client, Scope(str(project.pk), session_id="s 1"), base=5 * 10**9)

    assert limit_usage.usage_of(project.pk, "s 1", NOW) == {
        "minute": {
            "start": "2026-11-21T12:34:00Z",
            "resets_in_seconds": 42,
            "requests": {"used": 7, "limit": 60, "remaining": 53},
            "tokens": {"used": 1200, "limit": 1000, "remaining": 0},
        },
        "month": {
            "start": "2026-11-01T00:00:00Z",
            "end": "2026-12-01T00:00:00Z",
            "spent_usd": 25.0,
            "reserved_usd": 1.0,
            "budget_usd": 100.0,
            "remaining_usd": 74.0,
            "is_certain": True,
            "hard_stop": True,
            "forecast_usd": pytest.approx(25 * 30 / 20.524, rel=1e-4),
        },
        "session": {
            "session_id": "s 1",
            "spent_usd": 0.5,
            "reserved_usd": 0.0,
            "budget_usd": 1.0,
            "remaining_usd": 0.5,
            "is_certain": True,
        },
    }


def test_usage__of_a_project_without_limits__is_what_the_log_holds(spool: Path) -> None:
    project = make_project()
    now = datetime.now(UTC).replace(second=18)
    spent_in_log(spool, project, "0.25", at=now, session="s", prompt_tokens=10, completion_tokens=4)
    later = now.replace(second=40)

    found = limit_usage.usage_of(project.pk, "s", later)

    assert found["minute"]["requests"] == {"used": 1, "limit": None, "remaining": None}
    assert found["minute"]["tokens"]["used"] == 14
    assert found["session"]["session_id"] == "s"


@pytest.mark.parametrize("fields", [{"unsure": 1}, {"run": "of another start"}])
def test_spend__that_redis_is_not_certain_of__is_the_larger_one(
    client: redis.Redis, spool: Path, now: datetime, fields: dict[str, Any]
) -> None:
    project = make(monthly_budget_usd=Decimal(10))
    month = now.strftime("%Y-%m")
    spent_in_log(spool, project, "3.5", at=now.replace(microsecond=0))
    for counted, expected in ((10**10, 3.5), (4 * 10**10, 4.0)):
        certain(client, Scope(str(project.pk), month=month), base=counted, **fields)
        assert limit_usage.usage_of(project.pk, "", now)["month"]["spent_usd"] == expected


def test_redis_away__the_request_log_answers(settings: Any, spool: Path, now: datetime) -> None:
    project = make(monthly_budget_usd=Decimal(10), rate_limit_enabled=True, rate_limit_rpm=5, rate_limit_tpm=5)
    spent_in_log(spool, project, "3.5", at=now, session="s")
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    answer = api(project).get(PATH, {"session_id": "s"})

    assert answer.status_code == 200, answer.content
    assert answer.json()["month"]["spent_usd"] == 3.5
    assert answer.json()["session"]["spent_usd"] == 3.5


def test_log_away__figures_of_redis__are_uncertain(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch, now: datetime
) -> None:
    project = make(monthly_budget_usd=Decimal(10))

    def fail(*_: Any, **__: Any) -> Decimal:
        raise AnalyticsUnavailableError("The analytics store is away.")

    monkeypatch.setattr(figures, "project_spend", fail)
    monkeypatch.setattr(limit_usage, "list_usage", fail)
    assert api(project).get(PATH).status_code == 503

    month = now.strftime("%Y-%m")
    certain(client, Scope(str(project.pk), month=month), base=2 * 10**10, unsure=1)
    found = api(project).get(PATH).json()["month"]
    assert (found["spent_usd"], found["is_certain"]) == (2.0, False)


# A record of a time to come stays recent on a busy machine.
@pytest.mark.parametrize("seconds_ago", [60, -600])
@pytest.mark.parametrize("is_counted", [True, False], ids=["redis", "log"])
def test_usage__while_a_record_waits__is_certain_for_five_seconds(
    client: redis.Redis, settings: Any, spool: Path, now: datetime, seconds_ago: int, is_counted: bool
) -> None:
    project = make(monthly_budget_usd=Decimal(10))
    key = make_key(project)[0]
    if is_counted:
        certain(client, Scope(str(project.pk), month=now.strftime("%Y-%m")), base=10**10)
    settings.SPOOL_DIR = spool
    queries = {"session_id": "s", "key_id": str(key.pk), "user_id": "ann"}
    ended_at = datetime.now(UTC).timestamp() - seconds_ago
    writer = SpoolWriter(spool)
    writer.append(SpoolEntry(make_record(project_id=str(project.pk), ts=int(ended_at * 1e6), latency_ms=0)))

    waiting = api(project).get(PATH, queries).json()
    writer.close()
    store(spool)
    shipped = api(project).get(PATH, queries).json()

    is_recent = seconds_ago < 0
    assert _certainties(waiting) == dict.fromkeys(("month", "session", "key", "key total", "user"), is_recent)
    assert set(_certainties(shipped).values()) == {True}


def _certainties(usage: dict[str, Any]) -> dict[str, bool]:
    spends = {
        "month": usage["month"],
        "session": usage["session"],
        "key": usage["key"]["month"],
        "key total": usage["key"]["total"],
        "user": usage["user"]["month"],
    }
    return {name: spend["is_certain"] for name, spend in spends.items()}


def test_usage__of_another_project__is_its_own(client: redis.Redis, now: datetime) -> None:
    mine, other = make(monthly_budget_usd=Decimal(10)), make(monthly_budget_usd=Decimal(10))
    month = now.strftime("%Y-%m")
    certain(client, Scope(str(other.pk), month=month), base=2 * 10**10)
    assert api(mine).get(PATH).json()["month"]["spent_usd"] == 0.0
    assert api(mine).get(PATH, {"project_id": str(other.pk)}).status_code == 403


@pytest.mark.parametrize("session_id", ["%", "' OR 1=1 --", "\\", "{x}", "x" * 1024, "\ud83d", "é" * 300])
def test_session__of_any_name__is_no_error_and_nobodys(session_id: str) -> None:
    answer = api(make_project()).get(PATH, {"session_id": session_id.encode("utf-8", "replace")})
    assert answer.status_code == 200, answer.content
    assert answer.json()["session"]["spent_usd"] == 0.0


@tabled
def test_forecast__goes_on_as_it_did(now: datetime, expected: int) -> None:
    assert limit_usage.forecast(Decimal(10), now) == pytest.approx(Decimal(expected), rel=Decimal("0.00001"))
