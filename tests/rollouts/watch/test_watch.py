"""The watch over a target at 100 %: from requests in ClickHouse to warnings, which move nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analytics.errors import AnalyticsUnavailableError
from analytics.parameters.ranges import TimeRange
from analytics.request_log.record import Outcome, SpoolEntry
from core.roles import Role
from gateway.reports.problems import find_problems
from gateway.tables.figure_alert import AlertChannel, AlertEvent
from prompts.services import activate_version
from rollouts.models import Rollout, RolloutTransition, RolloutWatch
from rollouts.services import complete_rollout, promote_rollout, roll_back_rollout
from rollouts.states import Stage
from rollouts.tasks import evaluate_rollouts
from rollouts.watch import look
from rollouts.watch.look import watch_rollouts
from tests.factories.analytics import make_entry, store_as_of_then
from tests.factories.core import client_of, make_staff
from tests.factories.rollouts import make_rollout
from tests.factories.settings import make_settings

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

FAILED: dict[str, Any] = {"outcome": Outcome.ERROR, "status_code": 503, "error_code": "provider_unavailable"}
HOUR = timedelta(hours=1)
STAGES = [Stage(50, 0, 0), Stage(100, 60, 0)]


def this_hour() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def alone(hours_ago: int = 5) -> Rollout:
    """Returns a rollout whose target has got all of the traffic for so many hours."""
    rollout = make_rollout(started=True, stages=STAGES, name="Shorter")
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    rollout.stages.filter(number=2).update(entered_at=this_hour() - hours_ago * HOUR)
    rollout.refresh_from_db()
    return rollout


def served(
    rollout: Rollout, version: int, hours_ago: float, number: int, *, failed: int = 0, **values: Any
) -> Iterator[SpoolEntry]:
    """Returns requests of an hour that began so many hours ago."""
    began = this_hour() - timedelta(hours=hours_ago)
    for index in range(number):
        fields: dict[str, Any] = {
            "ts": int((began + HOUR * index / (number + 1)).timestamp() * 1_000_000),
            "project_id": str(rollout.project_id),
            "prompt_config_id": str(rollout.config_id),
            "prompt_version": version,
            "latency_ms": 200 + 10 * (index % 10),
            "cost_usd": "0.0010000000",
            **values,
        }
        yield make_entry(**{**fields, **(FAILED if index < failed else {})})


def a_week(rollout: Rollout, *, hours_ago: int = 5) -> Iterator[SpoolEntry]:
    """Returns four days of the baseline, of which 1 in 10 requests fails."""
    for hour in range(1, 97):
        yield from served(rollout, 1, hours_ago + hour, 10, failed=1)


def watch_of(rollout: Rollout) -> RolloutWatch:
    return RolloutWatch.objects.get(rollout=rollout)


def shown(rollout: Rollout) -> Any:
    answer = client_of(rollout.project).get(f"/api/llm/prompts/rollouts/{rollout.pk}/metrics")
    assert answer.status_code == 200, answer.content
    return answer.json()["watch"]


def standing(rollout: Rollout) -> tuple[Any, ...]:
    """Returns everything that a transition would change."""
    rollout.refresh_from_db()
    moves = list(RolloutTransition.objects.filter(rollout=rollout).values_list("action", "actor"))
    return rollout.status, rollout.current_stage, rollout.config.active_version_id, moves


@pytest.fixture
def failing(spool: Path) -> Rollout:
    """A target at 100 % for five hours, of which half of the requests fail."""
    rollout = alone()
    store_as_of_then(
        spool,
        *a_week(rollout),
        *(
            entry
            for hour in range(1, 6)
            for entry in served(rollout, 2, hour, 60, failed=30, variant="target", alloc_unit=7, rollout_stage=2)
        ),
    )
    return rollout


def test_watch__target_fails_more_often__warns_once_and_moves_nothing(
    failing: Rollout, caplog: pytest.LogCaptureFixture
) -> None:
    before = standing(failing)

    watch_rollouts()
    watch_rollouts()

    found = shown(failing)
    assert found["state"] == "warned"
    assert (found["baseline_request_count"], found["request_count"]) == (960, 300)
    metric = found["metrics"]["unanswered"]
    assert (metric["value"], metric["before"]) == pytest.approx((0.5, 0.1))
    assert 0 < metric["interval"]["low"] < metric["difference"] < metric["interval"]["high"]
    assert metric["warned_at"] == this_hour().isoformat()
    assert found["metrics"]["latency_average"]["warned_at"] is None
    assert found["metrics"]["cost_per_request"]["value"] == pytest.approx(0.001, rel=0.02)
    logged = [record.getMessage() for record in caplog.records if "rollout.watch_warned" in record.getMessage()]
    assert sorted(line.rpartition("metric=")[2] for line in logged) == ["error_rate", "unanswered"]
    assert standing(failing) == before


def test_watch__warns__sends_one_message_by_the_addresses_of_the_project(failing: Rollout) -> None:
    make_settings(failing.project, alert_webhook_url="https://x.example/", alert_emails=["a@x.example"])
    AlertChannel.objects.create(project=failing.project, name="Team", kind="slack", receives_project_alerts=True)
    AlertChannel.objects.create(project=failing.project, name="Of an alert", kind="slack")

    watch_rollouts()
    watch_rollouts()

    event = AlertEvent.objects.get(rollout=failing)
    assert event.content["type"] == "rollout.watch"
    assert (event.content["id"], event.content["rollout_id"]) == (str(event.pk), str(failing.pk))
    assert event.content["metrics"] == ["unanswered", "error_rate"]
    sentence = "The target of the rollout Shorter does worse at 100 % than the version before it: unanswered, errors."
    assert event.content["message"] == sentence
    assert sentence in event.text
    assert f"/admin/rollouts/rollout/{failing.pk}/change/" in event.text
    assert [(row.channel, row.channel_name) for row in event.deliveries.all()] == [
        ("webhook", ""),
        ("email", ""),
        ("slack", "Team"),
    ]


def test_watch__warned__listed_on_home_and_shown_on_the_page(failing: Rollout, client: Client) -> None:
    watch_rollouts()

    now = datetime.now(UTC)
    listed = find_problems(failing.project_id, TimeRange(now - HOUR, now))["problems"]
    [problem] = [one for one in listed if one["kind"] == "rollout_watch_warned"]
    assert problem["subject"] == str(failing.pk)
    assert "Shorter does worse at 100 % than the version before it: unanswered, errors." in problem["message"]

    client.force_login(make_staff(Role.READER, failing.project))
    page: Any = client.get(f"/admin/rollouts/rollout/{failing.pk}/change/", {"project": str(failing.project_id)})
    text = b"".join(page.streaming_content).decode()
    assert "Version 2 does worse than version 1 did in the week before: unanswered, errors." in text
    assert "Slower than the usual 95th percentile" in text


def test_watch__policy_ignores_the_metric__figures_without_a_warning(failing: Rollout) -> None:
    Rollout.objects.filter(pk=failing.pk).update(policy={"unanswered": "ignore", "error_rate": "ignore"})
    watch_rollouts()
    found = shown(failing)
    assert (found["state"], found["metrics"]["unanswered"]["warned_at"]) == ("watching", None)
    assert found["metrics"]["unanswered"]["value"] == pytest.approx(0.5)


def test_watch__completed__goes_on_for_a_week_with_requests_outside_of_a_rollout(spool: Path) -> None:
    rollout = alone()
    store_as_of_then(
        spool,
        *a_week(rollout),
        *served(rollout, 2, 5, 60, failed=6, variant="target", alloc_unit=7),
        *served(rollout, 2, 4, 60, failed=6),
        *served(rollout, 2, 2, 60, failed=6),
        *served(rollout, 2, 3, 60, failed=6, cache_status="hit"),
        *served(rollout, 2, 3, 60, failed=6, source="playground"),
        *served(rollout, 2, 3, 60, failed=6, question_cached=True),
        *served(rollout, 2, 3, 60, failed=6, variant="target", alloc_unit=0),
    )
    complete_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")

    watch_rollouts()

    found = shown(rollout)
    assert (found["state"], found["request_count"], found["ended_at"]) == ("watching", 180, None)
    assert "does not do worse" in found["explanation"]
    rollout.refresh_from_db()
    assert rollout.ended_at is not None
    assert datetime.fromisoformat(found["until"]) == rollout.ended_at + timedelta(days=7)

    Rollout.objects.filter(pk=rollout.pk).update(ended_at=this_hour() - timedelta(days=7))
    watch_rollouts()
    assert watch_of(rollout).ended_at is not None


def test_watch__completed_before_its_last_stage__begins_at_the_end(spool: Path) -> None:
    rollout = make_rollout(started=True, stages=STAGES)
    store_as_of_then(spool, *a_week(rollout))
    complete_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    watch_rollouts()
    rollout.refresh_from_db()
    assert watch_of(rollout).since == rollout.ended_at
    assert "Nothing is known yet" in shown(rollout)["explanation"]


def test_watch__another_version_is_active_or_rolled_back__ends(failing: Rollout) -> None:
    watch_rollouts()
    complete_rollout(project_id=failing.project_id, rollout_id=failing.pk, actor="key:1")
    first = failing.config.versions.get(number=1)
    activate_version(project_id=failing.project_id, config_id=failing.config_id, version_id=first.pk, actor="key:1")
    watch_rollouts()
    assert watch_of(failing).ended_at is not None
    now = datetime.now(UTC)

    listed = find_problems(failing.project_id, TimeRange(now - HOUR, now))["problems"]
    assert "rollout_watch_warned" not in [one["kind"] for one in listed]


def test_watch__rolled_back_at_100_percent__ends(spool: Path) -> None:
    rollout = alone()
    store_as_of_then(spool, *a_week(rollout))
    watch_rollouts()
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    watch_rollouts()
    assert watch_of(rollout).ended_at is not None


def test_watch__little_of_the_baseline__silent_and_says_why(spool: Path) -> None:
    rollout = alone()
    store_as_of_then(spool, *served(rollout, 1, 6, 20), *served(rollout, 2, 4, 200, failed=200))
    watch_rollouts()
    found = shown(rollout)
    assert (found["state"], found["metrics"], found["through"]) == ("silent", {}, None)
    assert "version 1 had 20 requests within 1 hours" in found["explanation"]


def test_watch__no_rollout_at_100_percent__none(spool: Path) -> None:
    rollout = make_rollout(started=True, stages=STAGES)
    watch_rollouts()
    assert shown(rollout) is None


def test_watch__hour_not_closed__not_read(failing: Rollout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "closed_until", lambda _: this_hour() - timedelta(minutes=1))
    watch_rollouts()
    assert watch_of(failing).through == this_hour() - HOUR
    assert shown(failing)["request_count"] == 240


def test_watch__store_away__logged_and_looked_at_later(
    failing: Rollout, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patched:

        def away(*_: Any, **__: Any) -> None:
            raise AnalyticsUnavailableError("away")

        patched.setattr(look, "read_before", away)
        watch_rollouts()
    assert "rollout.watch_failed" in caplog.text
    assert not RolloutWatch.objects.filter(rollout=failing).exists()
    watch_rollouts()
    assert shown(failing)["state"] == "warned"


def test_task__watches_after_evaluating(failing: Rollout) -> None:
    evaluate_rollouts()
    assert shown(failing)["state"] == "warned"
