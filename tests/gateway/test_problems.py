"""`GET /api/llm/problems`: what is wrong in a project now."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from analytics.errors import AnalyticsUnavailableError
from analytics.models import TraceDestination, TraceDestinationStatus
from analytics.parameters.ranges import TimeRange
from analytics.queries.groups import get_sums
from analytics.queries.summed import Sums
from analytics.request_log.record import Outcome
from core.models import Project
from gateway.limits.figures import Spend
from gateway.reports import log_looks, problems
from gateway.tables.alert import AlertDelivery, BudgetAlert
from integrations.errors import HealthUnavailableError
from integrations.health.reader import HealthStatus, ProviderHealth
from integrations.health.targets import CircuitState, TargetHealth
from rollouts.services import roll_back_rollout
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_project
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout
from tests.factories.settings import make_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, settings: Settings) -> Path:
    """An empty spool: that of the suite may have records that wait."""
    directory = tmp_path / "spool"
    (directory / "dead").mkdir(parents=True)
    settings.SPOOL_DIR = directory
    return directory


@pytest.fixture(autouse=True)
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "project_health", lambda project_id: [])


def found(project: Project, **query: Any) -> list[dict[str, Any]]:
    answer = client_of(project).get("/api/llm/problems", query)
    assert answer.status_code == 200, answer.json()
    listed: list[dict[str, Any]] = answer.json()["problems"]
    return listed


def requests(directory: Path, project: Project, count: int, failed: int) -> None:
    now = int(datetime.now(UTC).timestamp() * 1_000_000)
    store(
        directory,
        *(
            make_entry(
                project_id=str(project.pk),
                ts=now - 1_000_000 * (index + 1),
                outcome=Outcome.ERROR if index < failed else Outcome.SUCCESS,
                status_code=503 if index < failed else 200,
            )
            for index in range(count)
        ),
    )


def test_problems__nothing_wrong__empty_with_the_range(project: Project) -> None:
    answer = client_of(project).get("/api/llm/problems").json()
    assert answer["problems"] == []
    start, end = (datetime.fromisoformat(answer[name]) for name in ("start_date", "end_date"))
    assert end - start == timedelta(days=1)


@pytest.mark.parametrize(
    ("count", "failed", "severity"), [(19, 19, None), (40, 1, None), (40, 2, "warning"), (40, 8, "critical")]
)
def test_problems__share_of_errors__from_five_per_cent_of_enough_requests(
    project: Project, tmp_path: Path, count: int, failed: int, severity: str | None
) -> None:
    requests(tmp_path / "spool", project, count, failed)
    listed = [problem for problem in found(project) if problem["kind"] == "error_share"]
    assert [problem["severity"] for problem in listed] == ([severity] if severity else [])
    for problem in listed:
        assert (problem["value"], problem["threshold"]) == (failed / count, 0.05)
        assert f"{failed} of {count}" in problem["message"]


def health(provider: str, status: HealthStatus) -> ProviderHealth:
    return ProviderHealth(
        provider, status, TargetHealth(CircuitState.CLOSED, 50, 0.5, 1.0, 2.0, 3.0, degraded=True), ()
    )


def test_problems__providers__those_that_are_not_healthy_and_down_ones_first(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {"azure": HealthStatus.DEGRADED, "groq": HealthStatus.HEALTHY, "openai": HealthStatus.DOWN}
    rows = [health(name, status) for name, status in states.items()]
    monkeypatch.setattr(problems, "project_health", lambda project_id: rows)
    listed = [(problem["kind"], problem["subject"], problem["severity"]) for problem in found(project)]
    assert listed == [("provider_down", "openai", "critical"), ("provider_degraded", "azure", "warning")]


def test_problems__redis_away__says_that_live_figures_are(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(project_id: object) -> list[ProviderHealth]:
        raise HealthUnavailableError("Redis does not answer.")

    monkeypatch.setattr(problems, "project_health", away)
    assert [problem["kind"] for problem in found(project)] == ["live_figures_unavailable"]


@pytest.mark.parametrize(("spent", "kind"), [("1", None), ("60", "budget_forecast"), ("100", "budget_spent")])
def test_problems__budget__by_forecast_and_by_spend(
    project: Project, monkeypatch: pytest.MonkeyPatch, spent: str, kind: str | None
) -> None:
    make_settings(project, monthly_budget_usd=100)
    spend = Spend(Decimal(spent), Decimal(0), is_certain=True)
    monkeypatch.setattr("gateway.limits.figures.Figures.month", lambda *_: spend)
    tenth = datetime(2026, 11, 10, tzinfo=UTC)
    range_ = TimeRange(tenth - timedelta(days=1), tenth)
    listed = problems.find_problems(project.pk, range_, tenth)["problems"]
    assert [problem["kind"] for problem in listed] == ([kind] if kind else [])
    assert [problem["threshold"] for problem in listed] == ([100.0] if kind else [])


def test_problems__rollback__in_the_range_with_its_reason(project: Project) -> None:
    rollout = make_rollout(make_config(project, versions=2), started=True, name="Shorter")
    roll_back_rollout(project_id=project.pk, rollout_id=rollout.pk, actor="test", reason="Too many errors.")
    [problem] = found(project)
    assert (problem["kind"], problem["subject"]) == ("rollout_rolled_back", str(rollout.pk))
    assert problem["message"] == "The rollout Shorter was rolled back: Too many errors."
    assert found(project, end_date="2026-01-01") == []


@pytest.mark.parametrize(
    ("state", "attempts", "is_problem"),
    [("failed", 8, True), ("pending", 2, True), ("pending", 0, False), ("delivered", 1, False)],
)
def test_problems__alert__not_delivered(project: Project, state: str, attempts: int, is_problem: bool) -> None:
    alert = BudgetAlert.objects.create(
        project=project, month="2026-11", threshold_percent=90, budget_usd=100, spent_usd=91
    )
    AlertDelivery.objects.create(
        alert=alert,
        channel="webhook",
        state=state,
        attempts=attempts,
        next_attempt_at=timezone.now(),
        last_error="It answered 500.",
    )
    assert [problem["subject"] for problem in found(project)] == ([str(alert.pk)] if is_problem else [])


def test_problems__dead_letters__are_named(project: Project, spool: Path) -> None:
    (spool / "dead" / "one.reason").write_text("damaged", encoding="utf-8")
    assert [problem["kind"] for problem in found(project)] == ["dead_letters"]


def test_problems__store_away__is_critical_after_two_looks(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise AnalyticsUnavailableError("The store does not answer.")

    with monkeypatch.context() as gone:
        gone.setattr(log_looks, "get_sums", away)
        seen = [[(one["kind"], one["severity"]) for one in found(project)] for _ in range(3)]
    unavailable = [("store_unavailable", "critical")]
    assert seen == [[("store_slow", "warning")], unavailable, unavailable]

    assert found(project) == []
    with monkeypatch.context() as gone:
        gone.setattr(log_looks, "get_sums", away)
        assert [one["kind"] for one in found(project)] == ["store_slow"]


def test_problems__store_answers_late__never_critical_and_not_asked_twice(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, release = [], threading.Event()

    def late(*hour: Any) -> Sums:
        asked.append(hour)
        release.wait()
        return get_sums(*hour)

    monkeypatch.setattr(log_looks, "get_sums", late)
    monkeypatch.setattr(problems, "_STORE_SECONDS", 0.01)
    try:
        for _ in range(3):
            assert [(one["kind"], one["severity"]) for one in found(project)] == [("store_slow", "warning")]
    finally:
        release.set()
    assert len(asked) == 1
    wait_until(lambda: found(project) == [])


def test_problems__of_another_project__are_not_shown(project: Project, tmp_path: Path) -> None:
    requests(tmp_path / "spool", make_project(), 40, 40)
    rollout = make_rollout(make_config(make_project(), versions=2), started=True)
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test")
    assert found(project) == []


def test_trace_export__failing_destination__named_with_its_error(project: Project) -> None:
    now = timezone.now()
    row = TraceDestination.objects.create(project=project, name="Collector", endpoint="https://example.com/v1/traces")
    status = TraceDestinationStatus.objects.create(
        destination=row, host="a", last_error="The collector answered 401.", last_error_at=now
    )

    [problem] = found(project)
    assert (problem["kind"], problem["subject"]) == ("trace_export_failing", str(row.pk))
    assert problem["message"] == "Spans do not reach Collector: The collector answered 401."

    status.last_success_at = now + timedelta(seconds=1)
    status.save()
    assert found(project) == []
