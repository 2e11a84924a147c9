"""The whole way of outcomes: records in ClickHouse, scores that the application sends, and the verdict."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.models import Score
from analytics.queries.variants.by_record import BUCKETS
from analytics.request_log.record import SpoolEntry
from rollouts.allocation import AllocationType
from rollouts.models import Mode, Rollout, RolloutEvaluation
from rollouts.quality.entries import QualityEntry
from rollouts.states import Stage
from rollouts.verdicts.evaluate import evaluate_rollout
from tests.factories.analytics import store_as_of_then
from tests.rollouts.conftest import Api
from tests.rollouts.replay import replayed_figures
from tests.rollouts.request_log import this_minute
from tests.rollouts.test_metrics_api import entries, metrics_of, running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clickhouse", "still_clock")]

RESOLVED = QualityEntry(score_name="resolved")


def send(api: Api, *items: dict[str, Any], ago: int = 3) -> None:
    """Sends outcomes as if that had been so many minutes ago."""
    body = {"project_id": str(api.project.pk), "scores": [{"score_type": "boolean", **item} for item in items]}
    response = api.client.post("/api/llm/scores/batch", body, content_type="application/json")
    assert response.status_code == 201, response.content
    ids = [one["id"] for one in response.json()["scores"]]
    Score.objects.filter(pk__in=ids).update(created_at=this_minute() - timedelta(minutes=ago))


def resolved(made: list[SpoolEntry], *, target: bool, baseline: bool, key: str = "request_id") -> list[dict[str, Any]]:
    """Returns an outcome for each record, of its request or of what else `key` names."""
    values = {"target": target, "baseline": baseline}
    return [
        {key: str(getattr(one.record, key)), "score_name": "resolved", "score_value": values[one.record.variant]}
        for one in made
    ]


def judged(rollout: Rollout) -> dict[str, Any]:
    evaluate_rollout(rollout.pk)
    rollout.refresh_from_db()
    figures: dict[str, Any] = RolloutEvaluation.objects.get(rollout=rollout).verdict
    assert replayed_figures(rollout, figures) == figures
    return figures


def evaluated(rollout: Rollout) -> dict[str, Any]:
    [one] = judged(rollout)["quality"]["evaluators"]
    found: dict[str, Any] = one
    return found


def test_outcome_that_falls__late_and_twice_and_of_strangers__rolled_back_by_what_counts(api: Api, spool: Path) -> None:
    rollout = running(api, mode=Mode.AUTO, quality=[RESOLVED], stages=[Stage(50, 600, 5), Stage(100, 0, 0)])
    made = entries(rollout, 100)
    store_as_of_then(spool, *made)
    send(api, *resolved(made[:80], target=False, baseline=True), ago=4)
    # What comes again, or of a request that no rollout has, says nothing.
    send(
        api,
        *resolved(made[:80], target=True, baseline=False),
        {**resolved(made[:1], target=True, baseline=True)[0], "request_id": "mine"},
    )

    figures = judged(rollout)

    assert (rollout.status, figures["reason"]) == ("rolled_back", "quality_failing")
    assert figures["explanation"] == (
        "resolved: 0 % against 100 %. Certain enough to roll back. Read the requests whose outcome was bad and mend the"
        " version before you roll it out again."
    )
    [one] = metrics_of(api, rollout)["quality"]["evaluators"]
    of_arm = {arm: sum(entry.record.variant == arm for entry in made) for arm in ("target", "baseline")}
    done = {arm: sum(entry.record.variant == arm for entry in made[:80]) for arm in of_arm}
    for arm, tasks in one["tasks"].items():
        assert (tasks["due"], tasks["done"]) == (of_arm[arm], done[arm])
        assert tasks["missing_by_reason"] == {"no_outcome": of_arm[arm] - done[arm]}
    assert (one["score_name"], one["evaluator_id"], one["title"]) == ("resolved", None, "resolved")


def test_outcomes_of_users__one_each__of_the_arm_that_served_them(api: Api, spool: Path) -> None:
    rollout = running(api, allocation_type=AllocationType.USER_STICKY, quality=[RESOLVED])
    made = entries(rollout, 400, users=40)
    store_as_of_then(spool, *made)
    send(api, *resolved(made[:40], target=False, baseline=True, key="user_id"))
    # Another prompt answered last, and the user's arm counts all the same; further outcomes of a user do not.
    other = entries(rollout, 40, users=40, rollout_id="00000000-0000-0000-0000-000000000000", variant="", alloc_unit=0)
    store_as_of_then(spool, *other)
    send(api, *resolved(made[:40], target=True, baseline=False), ago=2)

    found = evaluated(rollout)

    # Users of one bucket are one.
    arms = {
        arm: len({one.record.alloc_unit % BUCKETS for one in made if one.record.variant == arm})
        for arm in found["tasks"]
    }
    assert {arm: tasks["due"] for arm, tasks in found["tasks"].items()} == arms
    assert (found["target"], found["baseline"], found["user_evidence"]) == (0.0, pytest.approx(1.0), None)


def test_number__less_is_better__counts_within_its_range(api: Api, spool: Path) -> None:
    rollout = running(api, quality=[QualityEntry(score_name="minutes", worst=60.0, best=0.0)])
    made = entries(rollout, 60)
    store_as_of_then(spool, *made)
    values = {"target": 90, "baseline": 15}
    send(
        api,
        *(
            {
                "request_id": str(one.record.request_id),
                "score_name": "minutes",
                "score_type": "number",
                "score_value": values[one.record.variant],
            }
            for one in made
        ),
    )

    one = evaluated(rollout)

    assert (one["target"], one["baseline"]) == (0.0, pytest.approx(0.75))


def test_request_not_yet_recorded__its_outcome_waits_and_then_counts(api: Api, spool: Path) -> None:
    rollout = running(api, quality=[RESOLVED])
    made = entries(rollout, 50)
    store_as_of_then(spool, *made[:40])
    send(api, *resolved(made[:25], target=True, baseline=True), ago=4)
    send(api, *resolved(made[25:], target=True, baseline=True))

    assert sum(tasks["due"] for tasks in evaluated(rollout)["tasks"].values()) == 25

    store_as_of_then(spool, *made[40:])
    RolloutEvaluation.objects.update(through=this_minute() - timedelta(minutes=2))

    assert sum(tasks["due"] for tasks in evaluated(rollout)["tasks"].values()) == 50


@pytest.mark.parametrize(
    ("target", "baseline", "verdict", "status"),
    [(True, False, "better", "completed"), (True, True, "not_better", "rolled_back")],
)
def test_ab_test__ends_with_its_verdict(
    api: Api, spool: Path, target: bool, baseline: bool, verdict: str, status: str
) -> None:
    goal = QualityEntry(score_name="resolved", goal=True, margin=0.05)
    rollout = running(api, mode=Mode.AUTO, quality=[goal], stages=[Stage(50, 0, 5)])
    made = entries(rollout, 1_600, latency_ms=200)
    store_as_of_then(spool, *made)
    send(api, *resolved(made[:800], target=target, baseline=baseline))
    send(api, *resolved(made[800:], target=target, baseline=baseline), ago=2)

    figures = judged(rollout)

    assert (rollout.status, figures["quality"]["goal"]["verdict"]) == (status, verdict), figures["explanation"]
    assert (figures["reason"], api.get(str(rollout.pk))["kind"]) == (f"goal_{verdict}", "ab_test")
    first = figures["explanation"].split(". ")[0]
    assert len(first.split()) <= 20
    assert first.startswith(f"resolved is {verdict.replace('_', ' ')} with the target")
