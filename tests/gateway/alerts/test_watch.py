"""The budget alerts that are raised, each of them once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db import connection

from analytics.errors import AnalyticsUnavailableError
from core.models import Project
from gateway.alerts.watch import raise_alerts, reached
from gateway.limits import figures
from gateway.limits.keys import Scope
from gateway.tables.alert import AlertDelivery, BudgetAlert
from gateway.tables.figure_alert import AlertChannel
from tests.factories.core import make_project
from tests.factories.settings import make_settings
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DOLLAR = 10**10


@pytest.fixture
def client(stores: None) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> dict[str, Decimal | Exception]:
    """The request log's figures of projects by id, as a test sets them."""
    spends: dict[str, Decimal | Exception] = {}

    def spend(project_id: Any, start: datetime, until: datetime) -> Decimal:
        found = spends.get(str(project_id), Decimal(0))
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(figures, "project_spend", spend)
    # A Redis that is only slow on a busy machine is not taken for away.
    monkeypatch.setattr(figures, "_TIMEOUT_SECONDS", TIMEOUT_SECONDS)
    return spends


def make(budget: str = "10", **given: Any) -> Project:
    project = make_project()
    values = {"budget_alert_enabled": True, "monthly_budget_usd": Decimal(budget), **given}
    make_settings(project, **values)
    return project


def counted(client: redis.Redis, project: Project, units: int, *, month: str = "2026-11", **fields: Any) -> None:
    """Makes Redis certain of the spend."""
    info: Any = client.info("server")
    key = Scope(str(project.pk), month=month).spend
    fields_stored: dict[Any, Any] = {"base": units, "since": 1, "run": info["run_id"], **fields}
    client.hset(key, mapping=fields_stored)


def percents(project: Project, month: str = "2026-11") -> list[int]:
    found = BudgetAlert.objects.for_project(project.pk).filter(month=month).order_by("threshold_percent")
    return list(found.values_list("threshold_percent", flat=True))


@tabled
def test_thresholds__of_a_spend(spent: str, budget: str, percent: list[int]) -> None:
    assert reached(Decimal(spent), Decimal(budget)) == percent


def test_alert__is_raised_once_a_threshold_as_spend_grows(client: redis.Redis) -> None:
    project = make()
    for spent, expected in ((4, []), (5, [50]), (5, [50]), (9, [50, 80]), (12, [50, 80, 100]), (20, [50, 80, 100])):
        counted(client, project, spent * DOLLAR)
        raise_alerts(NOW)
        assert percents(project) == expected
    assert BudgetAlert.objects.get(project=project, threshold_percent=80).spent_usd == 9


def test_alert__of_a_raised_budget__begins_anew(client: redis.Redis) -> None:
    project = make()
    seen = []
    for budget, spent in (("10", 9), ("20", 9), ("20", 12), ("15", 12), ("20", 16), ("20", 20)):
        make_settings(project, budget_alert_enabled=True, monthly_budget_usd=Decimal(budget))
        counted(client, project, spent * DOLLAR)
        seen.append([(alert.threshold_percent, int(alert.budget_usd)) for alert in raise_alerts(NOW)])

    # Half of 20 was reached before the budget was lowered, so that of 15 only what is more is told.
    assert seen == [[(50, 10), (80, 10)], [], [(50, 20)], [(80, 15)], [(80, 20)], [(100, 20)]]


def test_alert__again_in_the_next_month(client: redis.Redis) -> None:
    project = make()
    for month, now in (("2026-11", NOW), ("2026-12", NOW.replace(month=12))):
        counted(client, project, 6 * DOLLAR, month=month)
        raise_alerts(now)
    assert (percents(project), percents(project, "2026-12")) == ([50], [50])


def test_alert__of_what_ended_after_the_month_did(client: redis.Redis) -> None:
    project = make()
    counted(client, project, 6 * DOLLAR)
    raise_alerts(datetime(2026, 12, 1, 0, 30, tzinfo=UTC))
    assert percents(project) == [50]


@pytest.mark.parametrize("given", [{"budget_alert_enabled": False}, {"monthly_budget_usd": None}])
def test_project__without_alerts_or_budget__is_left_alone(client: redis.Redis, given: dict[str, Any]) -> None:
    project = make(**given)
    counted(client, project, 60 * DOLLAR)
    raise_alerts(NOW)
    assert percents(project) == []


@pytest.mark.parametrize("fields", [{"unsure": 1}, {"run": "another"}, None])
def test_figure__that_redis_is_not_certain_of__is_the_logs(
    client: redis.Redis, log: dict[str, Any], fields: dict[str, Any] | None
) -> None:
    project = make()
    if fields is not None:
        counted(client, project, 5 * DOLLAR, **fields)
    log[str(project.pk)] = Decimal("8.5")
    raise_alerts(NOW)
    assert percents(project) == [50, 80]


def test_redis_away__the_request_log_answers(log: dict[str, Any], settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    project = make()
    log[str(project.pk)] = Decimal("5.5")
    raise_alerts(NOW)
    assert percents(project) == [50]


def test_log_away__others_are_looked_at_and_the_next_time_is_right(
    client: redis.Redis, log: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    unknown, known = make(), make()
    log[str(unknown.pk)] = AnalyticsUnavailableError("away")
    counted(client, known, 5 * DOLLAR)
    raise_alerts(NOW)
    assert (percents(unknown), percents(known)) == ([], [50])
    assert "budgets.not_looked_at count=1" in caplog.text
    log[str(unknown.pk)] = Decimal(5)
    raise_alerts(NOW)
    assert percents(unknown) == [50]


@tabled
def test_alert__has_a_delivery_for_each_channel(
    client: redis.Redis, given: dict[str, Any], channels: list[str]
) -> None:
    project = make(**given)
    counted(client, project, 5 * DOLLAR)
    raise_alerts(NOW)
    raise_alerts(NOW)
    found = AlertDelivery.objects.filter(alert__project=project)
    assert [row.channel for row in found] == channels
    assert {row.state for row in found} <= {"pending"}


@pytest.mark.django_db(transaction=True)
def test_alert__looked_for_by_many_at_once__is_raised_by_one(client: redis.Redis) -> None:
    project = make(alert_webhook_url="https://x.example/")
    counted(client, project, 10 * DOLLAR)

    def look(_: int) -> int:
        try:
            return len(raise_alerts(NOW))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        raised = list(pool.map(look, range(8)))
    assert sum(raised) == 3
    assert percents(project) == [50, 80, 100]
    assert AlertDelivery.objects.filter(alert__project=project).count() == 3


def test_alert__also_by_the_channels_that_receive_what_concerns_the_project(client: redis.Redis) -> None:
    project = make(alert_emails=["a@x.example"])
    for name, receives in (("All", True), ("Figures alone", False)):
        AlertChannel.objects.create(project=project, name=name, kind="slack", receives_project_alerts=receives)
    AlertChannel.objects.create(project=make_project(), name="Foreign", kind="slack", receives_project_alerts=True)
    counted(client, project, 5 * DOLLAR)
    raise_alerts(NOW)
    found = AlertDelivery.objects.filter(alert__project=project)
    assert [(row.channel, row.channel_name) for row in found] == [("email", ""), ("slack", "All")]
