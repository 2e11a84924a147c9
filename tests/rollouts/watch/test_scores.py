"""The watch over a target at 100 % by the scores of online evaluations: against the baseline's, of the same kind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from analytics.evaluators.services import NewVersion, add_version
from analytics.models import EvaluationTask, Evaluator, OnlineEvaluation
from core.roles import Role
from gateway.tables.figure_alert import AlertEvent
from rollouts.models import Rollout
from rollouts.watch.look import watch_rollouts
from tests.factories.analytics import store_as_of_then
from tests.factories.core import make_staff
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_online_evaluation, new_task
from tests.factories.settings import make_settings
from tests.rollouts.watch.test_watch import HOUR, a_week, alone, served, shown, standing, this_hour, watch_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def evaluation_of(rollout: Rollout, name: str = "Accurate", *, matched: bool = False) -> OnlineEvaluation:
    evaluator = Evaluator.objects.filter(name=name).first() or make_evaluator(rollout.project, name=name)
    return make_online_evaluation(evaluator, matched=matched)


def scored(
    evaluation: OnlineEvaluation,
    rollout: Rollout,
    prompt_version: int,
    hours_ago: int,
    *scores: float | None,
    **fields: Any,
) -> None:
    """Makes tasks of requests of an hour that began so many hours ago; None is one without a score."""
    began, version = this_hour() - hours_ago * HOUR, evaluation.evaluator.versions.get(number=1)
    EvaluationTask.objects.bulk_create(
        new_task(
            evaluation,
            **{
                "version": version,
                "due_at": began + timedelta(minutes=2 + index),
                "prompt_config_id": rollout.config_id,
                "prompt_version": prompt_version,
                "score": score,
                **fields,
            },
        )
        for index, score in enumerate(scores)
    )


def scored_week(evaluation: OnlineEvaluation, rollout: Rollout, **fields: Any) -> None:
    """Scores 4 answers of 5 of each hour of `a_week` as good."""
    for hour in range(1, 97):
        scored(evaluation, rollout, 1, 5 + hour, 1, 1, 1, 1, 0, None, **fields)


@pytest.fixture
def target(spool: Path) -> Iterator[Rollout]:
    """A target at 100 % for five hours that fails no more often than the baseline."""
    rollout = alone()
    requests = (entry for hour in range(1, 6) for entry in served(rollout, 2, hour, 40, failed=4))
    store_as_of_then(spool, *a_week(rollout), *requests)
    yield rollout


def score_since(evaluation: OnlineEvaluation, rollout: Rollout, *, good: int, of: int = 30, **fields: Any) -> None:
    for hour in range(1, 6):
        scored(evaluation, rollout, 2, hour, *[1.0] * good, *[0.0] * (of - good), **fields)


def test_watch__scores_fall__warns_once_and_moves_nothing(target: Rollout, client: Client) -> None:
    make_settings(target.project, alert_webhook_url="https://x.example/")
    evaluation = evaluation_of(target)
    scored_week(evaluation, target)
    score_since(evaluation, target, good=12)
    before = standing(target)

    watch_rollouts()
    watch_rollouts()

    found = shown(target)
    [(title, score)] = found["scores"].items()
    assert title == "Accurate@1"
    assert (score["value"], score["before"], score["difference"]) == pytest.approx((0.4, 0.8, -0.4))
    assert score["interval"]["low"] < -0.4 < score["interval"]["high"] < 0
    assert score["warned_at"] == this_hour().isoformat()
    assert found["state"] == "warned"
    assert "does worse than version 1 did in the week before: scores of Accurate@1." in found["explanation"]
    assert {name: one["warned_at"] for name, one in found["metrics"].items() if one["warned_at"]} == {}
    event = AlertEvent.objects.get(rollout=target)
    assert event.content["metrics"] == ["Accurate@1"]
    assert standing(target) == before

    client.force_login(make_staff(Role.READER, target.project))
    page: Any = client.get(f"/admin/rollouts/rollout/{target.pk}/change/", {"project": str(target.project_id)})
    assert "Mean score of Accurate@1" in b"".join(page.streaming_content).decode()


def test_watch__scores_as_before__no_warning(target: Rollout) -> None:
    evaluation = evaluation_of(target)
    scored_week(evaluation, target)
    score_since(evaluation, target, good=24)
    watch_rollouts()
    found = shown(target)
    assert found["state"] == "watching"
    assert found["scores"]["Accurate@1"]["value"] == pytest.approx(0.8)


def test_watch__scores_that_come_late__are_counted_by_the_next_look(target: Rollout) -> None:
    evaluation = evaluation_of(target)
    scored_week(evaluation, target)
    watch_rollouts()
    assert shown(target)["scores"] == {}

    score_since(evaluation, target, good=12)
    watch = watch_of(target)
    watch.through, watch.hours = watch.through - HOUR, watch.hours[:-1]
    watch.save()
    watch_rollouts()
    assert shown(target)["scores"]["Accurate@1"]["value"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"judge_model": "another-judge"}, id="of another model of the judge"),
        pytest.param({"prompt_config_id": uuid4()}, id="of another config"),
    ],
)
def test_watch__scores_of_another_kind__are_not_compared(target: Rollout, fields: dict[str, Any]) -> None:
    evaluation = evaluation_of(target)
    scored_week(evaluation, target)
    score_since(evaluation, target, good=0, **fields)
    watch_rollouts()
    assert shown(target)["scores"] == {}


def test_watch__an_edited_rubric__is_not_compared(target: Rollout) -> None:
    evaluation = evaluation_of(target)
    scored_week(evaluation, target)
    add_version(
        project_id=target.project_id,
        evaluator_id=evaluation.evaluator_id,
        new=NewVersion({"value": "eight"}),
        actor="user:ann",
    )
    score_since(evaluation, target, good=0, version=evaluation.evaluator.versions.get(number=2))
    watch_rollouts()
    assert shown(target)["scores"] == {}


def test_watch__two_evaluations_of_one_evaluator__each_answer_counts_once(target: Rollout) -> None:
    most, fewer, matched = evaluation_of(target), evaluation_of(target), evaluation_of(target, matched=True)
    scored_week(most, target)
    scored(fewer, target, 1, 20, 1, 1)
    scored_week(matched, target)
    score_since(most, target, good=24)
    score_since(fewer, target, good=0)
    watch_rollouts()
    assert shown(target)["scores"]["Accurate@1"]["value"] == pytest.approx(0.8)
