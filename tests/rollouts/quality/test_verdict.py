"""Scores in the verdict, from the API over tasks to the transition."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.models.online_evaluations import TaskState
from rollouts.models import Rollout, RolloutTransition
from tests.factories.evaluators import make_evaluator
from tests.rollouts.quality.conftest import BAD, GOOD, HALF, STAGES, Judged, entry, figures_of
from tests.rollouts.quality.tasks import matched, sampled

pytestmark = pytest.mark.django_db


def held(judged: Judged, rollout: Rollout) -> tuple[str, str, str]:
    """Returns decision, reason and sentence of a look after which the rollout stays where it is."""
    stage = rollout.current_stage
    judged.look(rollout)
    figures = figures_of(rollout)
    assert (rollout.status, rollout.current_stage) == ("running", stage)
    return figures["decision"], figures["reason"], figures["explanation"]


def test_worse_answers__by_a_rule__rolled_back_at_once_with_the_figures(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule), stages=[{**STAGES[0], "min_duration_minutes": 600}, STAGES[2]])
    judged.worse(rollout, rule)
    judged.look(rollout)
    assert rollout.status == "rolled_back"
    move = RolloutTransition.objects.get(rollout=rollout, action="roll_back")
    assert (move.actor, move.reason) == (
        "auto",
        "says seven@1: 0 % against 100 %. Certain enough to roll back. Read the answers with low scores and mend the"
        " version before you roll it out again.",
    )
    assert move.figures == figures_of(rollout)
    quality = move.figures["quality"]
    assert (quality["status"], quality["action"], move.figures["reason"]) == ("failing", "roll_back", "quality_failing")
    [one] = quality["evaluators"]
    assert (one["status"], one["pairs"], one["difference"]) == ("failing", 40, -1.0)
    assert one["explanation"] == "Worse: 0 % against 100 %, certain enough to roll back."
    metrics = {metric["status"] for metric in move.figures["metrics"].values()}
    assert (move.figures["status"], "failing" in metrics) == ("failing", False)


def test_harmless_answers__required__passes_and_completes(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule, required=True))
    judged.sampled_until(61)
    judged.requests(rollout, 60)
    judged.look(rollout, ago=55)
    assert rollout.current_stage == 2
    for ago in range(50, 20, -1):
        judged.requests(rollout, ago, stage=2, count=400)
    judged.scores(rollout, rule, range(50, 48, -1), GOOD, GOOD, stage=2)
    judged.sampled_until(46)
    judged.look(rollout, ago=20)
    figures = figures_of(rollout)
    assert (rollout.current_stage, figures["status"], figures["reason"]) == (2, "inconclusive", "quality_inconclusive")
    assert figures["explanation"].startswith("The answers are not shown to be as good yet by says seven@1 (20 of about")
    judged.scores(rollout, rule, range(40, 30, -1), GOOD, GOOD, stage=2)
    judged.sampled_until(0)
    judged.look(rollout, ago=10)
    assert (rollout.current_stage, figures_of(rollout)["reason"]) == (3, "passing")
    [one] = figures_of(rollout)["quality"]["evaluators"]
    assert (one["status"], one["not_passing"], one["pairs"]) == ("passing", None, 120)
    judged.look(rollout)
    assert (rollout.status, rollout.config.active_version_id) == ("completed", rollout.target_version_id)


def test_rollout__without_evaluators__decides_as_before(judged: Judged) -> None:
    rollout = judged.rollout(stages=HALF)
    judged.passing_metrics(rollout)
    judged.look(rollout)
    assert (rollout.current_stage, figures_of(rollout)["reason"]) == (2, "passing")
    assert "quality" not in figures_of(rollout)


@pytest.mark.parametrize(("required", "stages"), [(False, HALF), (True, STAGES)])
def test_evaluator__not_required_or_below_50_percent__does_not_hold_what_it_does_not_fail(
    judged: Judged, rule: OnlineEvaluation, required: bool, stages: list[dict[str, int]]
) -> None:
    rollout = judged.rollout(entry(rule, required=required), stages=stages)
    judged.passing_metrics(rollout)
    judged.look(rollout)
    assert rollout.current_stage == 2


def test_hold__worse_answers__hold_at_any_weight_and_a_person_may_promote(
    judged: Judged, rule: OnlineEvaluation
) -> None:
    rollout = judged.rollout(entry(rule, action="hold"))
    judged.worse(rollout, rule)
    assert held(judged, rollout) == (
        "wait",
        "quality_failing",
        "says seven@1: 0 % against 100 %. Certain enough to hold. Read the answers with low scores and mend the"
        " version, or promote by hand to accept it.",
    )
    assert judged.api.move(str(rollout.pk), "promote").json()["current_stage"] == 2


def test_ignored__worse_answers__shown_and_nothing_more(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule, action="ignore"))
    judged.worse(rollout, rule)
    judged.look(rollout)
    assert rollout.current_stage == 2
    quality = figures_of(rollout)["quality"]
    assert (quality["judged"], quality["status"]) == (False, "passing")
    assert quality["evaluators"][0]["explanation"] == "Ignored by this rollout: 0 % against 100 %."


def test_missing_scores_of_the_target__hold(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule, required=True))
    judged.requests(rollout, 40)
    judged.scores(rollout, rule, range(40, 20, -1), [*[1.0] * 6, *[None] * 4], GOOD)
    decision, reason, sentence = held(judged, rollout)
    assert (decision, reason) == ("wait", "quality_unscored")
    assert sentence == (
        "More of the target's answers have no score: says seven@1: 40.0 % against 0 %. Look at why they have none, then"
        " promote or roll back by hand."
    )
    quality = figures_of(rollout)["quality"]
    assert (quality["unscored"], quality["evaluators"][0]["not_passing"]) == (True, "missing_scores")


def test_missing_scores_of_both_arms__nothing_passes(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule, required=True), stages=HALF)
    judged.passing_metrics(rollout)
    some = [*[1.0] * 7, *[None] * 3]
    judged.scores(rollout, rule, range(50, 25, -1), some, some)
    decision, reason, sentence = held(judged, rollout)
    assert (decision, reason) == ("wait", "quality_inconclusive")
    assert "says seven@1 (too many scores are missing)" in sentence


@pytest.mark.usefixtures("totals")
def test_all_scores_missing__the_evaluator_says_so(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule))
    judged.requests(rollout, 40)
    judged.scores(rollout, rule, range(40, 30, -1), [None] * 2, [None] * 2)
    judged.look(rollout)
    [one] = judged.metrics(rollout)["quality"]["evaluators"]
    assert (one["pairs"], one["complete_pairs"]) == (20, 0)
    assert one["explanation"] == "Nothing to compare yet. 20 of 20 pairs lack a score."


def test_late_tasks__of_the_stage_before__still_roll_back(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule))
    judged.requests(rollout, 40)
    judged.scores(rollout, rule, range(40, 36, -1), [None] * 10, [None] * 10, state=TaskState.DUE, ended_at=None)
    judged.sampled_until(41)
    judged.look(rollout, ago=39)
    assert rollout.current_stage == 2
    EvaluationTask.objects.filter(variant="target").update(state=TaskState.DONE, score=0.0)
    EvaluationTask.objects.filter(variant="baseline").update(state=TaskState.DONE, score=1.0)
    for task in EvaluationTask.objects.all():
        EvaluationTask.objects.filter(pk=task.pk).update(ended_at=task.due_at + timedelta(minutes=14))
    judged.sampled_until(0)
    judged.look(rollout)
    assert (rollout.status, figures_of(rollout)["quality"]["evaluators"][0]["pairs"]) == ("rolled_back", 40)


def test_two_evaluators__one_of_them_worse__named(judged: Judged, rule: OnlineEvaluation) -> None:
    other = matched(judged.api.project, make_evaluator(judged.api.project, name="polite"))
    rollout = judged.rollout(entry(rule), entry(other, required=True))
    judged.requests(rollout, 40)
    judged.scores(rollout, rule, range(40, 34, -1), GOOD, GOOD)
    judged.scores(rollout, other, range(40, 34, -1), BAD, GOOD)
    judged.look(rollout)
    assert rollout.status == "rolled_back"
    figures = figures_of(rollout)
    assert figures["explanation"].startswith("polite@1: 0 % against 100 %. Certain enough to roll back.")
    statuses = {one["title"]: one["status"] for one in figures["quality"]["evaluators"]}
    assert statuses["polite@1"] == "failing"
    assert statuses["says seven@1"] in ("passing", "inconclusive")
    assert figures["quality"]["required"] == ["polite@1"]


def test_two_evaluators__both_required__both_have_to_pass(judged: Judged, rule: OnlineEvaluation) -> None:
    other = matched(judged.api.project, make_evaluator(judged.api.project, name="polite"))
    rollout = judged.rollout(entry(rule, required=True), entry(other, required=True), stages=HALF)
    judged.passing_metrics(rollout)
    judged.scores(rollout, rule, range(50, 35, -1), GOOD, GOOD)
    judged.scores(rollout, other, range(50, 48, -1), GOOD, GOOD)
    assert held(judged, rollout)[:2] == ("wait", "quality_inconclusive")
    quality = figures_of(rollout)["quality"]
    assert ([one["status"] for one in quality["evaluators"]], quality["required"]) == (
        ["passing", "inconclusive"],
        ["polite@1"],
    )


def test_manual_rollout__worse_answers__said_and_not_moved(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule), mode="manual")
    judged.worse(rollout, rule)
    assert held(judged, rollout)[:2] == ("roll_back", "quality_failing")


def test_metric_that_fails__before_scores_that_fail__is_the_reason(judged: Judged, rule: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(rule), stages=HALF)
    judged.log.add(rollout, 40, target=(40, 30), baseline=(40, 0))
    judged.scores(rollout, rule, range(40, 36, -1), BAD, GOOD)
    judged.look(rollout)
    assert (rollout.status, figures_of(rollout)["reason"]) == ("rolled_back", "metric_failing")


def test_minute_in_which_a_task_waits__nothing_is_decided_by_those_after_it(
    judged: Judged, rule: OnlineEvaluation
) -> None:
    rollout = judged.rollout(entry(rule))
    judged.requests(rollout, 14, count=10)
    sampled(rollout, rule, 12, target=[None], state=TaskState.DUE, ended_at=None)
    judged.scores(rollout, rule, range(11, 7, -1), BAD, GOOD)
    judged.look(rollout)
    assert (rollout.status, figures_of(rollout)["quality"]["evaluators"][0]["pairs"]) == ("running", 0)
    EvaluationTask.objects.filter(state=TaskState.DUE).update(state=TaskState.FAILED, reason="judge_failed")
    judged.look(rollout)
    assert rollout.status == "rolled_back"
