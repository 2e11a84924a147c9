"""Judges in the verdict: what a calibration lets them do, and what stops them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from analytics.evaluators.calibration.calibrate import Calibration, calibrate
from analytics.evaluators.calibration.states import Missing, Standing, State
from analytics.models import EvaluationTask, OnlineEvaluation
from rollouts.evaluation import from_json
from rollouts.evaluation.quality import QualityState
from rollouts.models import Rollout, RolloutQuality
from rollouts.quality import start
from rollouts.verdicts.quality import reading
from tests.factories.evaluators import make_evaluator
from tests.rollouts.quality.conftest import BAD, GOOD, HALF, Judged, entry, figures_of
from tests.rollouts.quality.tasks import matched

pytestmark = pytest.mark.django_db

CRITERION = {
    "name": "polite",
    "meaning": "It is polite.",
    "labels": [{"name": "yes", "meaning": "It is.", "score": 1}, {"name": "no", "meaning": "It is not.", "score": 0}],
}


@pytest.fixture
def judge(judged: Judged) -> OnlineEvaluation:
    project = judged.api.project
    evaluator = make_evaluator(project, "judge", name="polite", criteria=[CRITERION], model="openai/gpt-4o")
    return matched(project, evaluator, monthly_budget_usd=Decimal(10))


def stands(judged: Judged, state: State, scale: float | None = None, *missing: Missing) -> None:
    """Lets the calibration of all judges stand like this from now on."""
    standing = Standing(state, missing, scale)

    def found(*args: Any, **options: Any) -> Calibration:
        return replace(calibrate(*args, **options), standing=standing)

    judged.monkeypatch.setattr(start, "calibrate", found)
    judged.monkeypatch.setattr(reading, "calibrate", found)


def test_uncalibrated_judge__worse_answers__holds_although_a_rollback_is_asked_for(
    judged: Judged, judge: OnlineEvaluation
) -> None:
    rollout = judged.rollout(entry(judge, action="roll_back"))
    shown_rollout = judged.api.get(str(rollout.pk))
    [shown] = shown_rollout["quality"]
    assert shown_rollout["warnings"] == [
        "Where polite@1 finds the target worse, the rollout holds and is not rolled back: the judge of polite@1 is not"
        " calibrated."
    ]
    assert (shown["action"], shown["calibration"], shown["margin_scale"]) == ("hold", "uncalibrated", None)
    judged.worse(rollout, judge)
    judged.look(rollout)
    figures = figures_of(rollout)
    assert (rollout.status, figures["decision"], figures["reason"]) == ("running", "wait", "quality_failing")


def test_uncalibrated_judge__equal_answers__never_passes(judged: Judged, judge: OnlineEvaluation) -> None:
    rollout = judged.rollout(entry(judge, required=True), stages=HALF)
    judged.passing_metrics(rollout)
    judged.scores(rollout, judge, range(60, 20, -1), GOOD, GOOD)
    judged.look(rollout)
    figures = figures_of(rollout)
    assert (rollout.current_stage, figures["reason"]) == (1, "quality_inconclusive")
    assert figures["explanation"] == (
        "The answers are not shown to be as good yet by polite@1 (its judge is uncalibrated, so that it cannot pass)."
        " It will not pass by waiting: read its answers, and label some to calibrate its judge before the next rollout,"
        " or promote by hand."
    )
    [warning] = judged.api.get(str(rollout.pk))["warnings"]
    assert warning.startswith("polite@1 is required and cannot pass in this rollout")
    [one] = figures["quality"]["evaluators"]
    assert (one["status"], one["not_passing"], one["pairs"]) == ("inconclusive", "uncalibrated", 400)


def test_calibrated_judge__equal_answers__passes_with_the_margin_that_it_shows(
    judged: Judged, judge: OnlineEvaluation
) -> None:
    stands(judged, State.CALIBRATED, 0.6)
    rollout = judged.rollout(entry(judge, required=True), stages=HALF)
    [shown] = judged.api.get(str(rollout.pk))["quality"]
    assert (shown["action"], shown["calibration"], shown["margin_scale"]) == ("hold", "calibrated", 0.6)
    assert judged.api.get(str(rollout.pk))["warnings"] == []
    judged.passing_metrics(rollout)
    judged.scores(rollout, judge, range(60, 20, -1), GOOD, GOOD)
    judged.look(rollout)
    assert (rollout.current_stage, figures_of(rollout)["reason"]) == (2, "passing")


@pytest.mark.parametrize(("asked", "status"), [({}, "running"), ({"action": "roll_back"}, "rolled_back")])
def test_calibrated_judge__worse_answers__rolled_back_only_if_asked_for(
    judged: Judged, judge: OnlineEvaluation, asked: dict[str, str], status: str
) -> None:
    stands(judged, State.CALIBRATED, 0.6)
    rollout = judged.rollout(entry(judge, **asked))
    judged.worse(rollout, judge)
    judged.look(rollout)
    assert (rollout.status, figures_of(rollout)["reason"]) == (status, "quality_failing")


def test_calibrated_judge__with_labels__rolls_back_by_default(judged: Judged) -> None:
    sample = labelled(judged)
    stands(judged, State.CALIBRATED, 0.6)
    [shown] = judged.api.get(str(judged.rollout(entry(sample)).pk))["quality"]
    assert (shown["action"], shown["label_share"]) == ("roll_back", 0.5)


def test_rule__labels_of_its_online_evaluation__are_waited_for_only_if_asked(judged: Judged) -> None:
    sample = matched(judged.api.project, make_evaluator(judged.api.project, name="says seven"), label_share=0.5)
    first = judged.api.get(str(judged.rollout(entry(sample)).pk))
    assert (first["quality"][0]["label_share"], first["warnings"]) == (None, [])
    judged.api.move(first["id"], "rollback")
    second = judged.api.get(str(judged.rollout(entry(sample, label_share=0.5)).pk))
    assert second["quality"][0]["label_share"] == 0.5
    assert second["warnings"] == [
        "says seven@1 is a rule, which is right by definition, and the rollout waits for labels of people."
    ]


@pytest.mark.parametrize(
    ("state", "missing"),
    [(State.DRIFTED, (Missing.STEADY_VERDICTS,)), (State.STALE, (Missing.JUDGE_MODEL,))],
)
def test_judge__that_is_another_one_in_the_middle__decides_nothing_any_more(
    judged: Judged, judge: OnlineEvaluation, state: State, missing: tuple[Missing, ...]
) -> None:
    stands(judged, State.CALIBRATED, 0.6)
    rollout = judged.rollout(entry(judge, required=True), stages=HALF)
    judged.sampled_until(121)
    judged.passing_metrics(rollout)
    judged.scores(rollout, judge, range(60, 58, -1), GOOD, GOOD)
    judged.sampled_until(50)
    judged.look(rollout, ago=20)
    before = figures_of(rollout)["quality"]["evaluators"][0]
    assert (before["drifted"], before["pairs"]) == (False, 20)
    stands(judged, state, None, *missing)
    RolloutQuality.objects.update(calibrated_at={})
    judged.scores(rollout, judge, range(40, 30, -1), BAD, GOOD)
    judged.sampled_until(0)
    judged.look(rollout)
    figures = figures_of(rollout)
    after = figures["quality"]["evaluators"][0]
    assert (after["drifted"], after["not_passing"], after["pairs"]) == (True, "judge_drifted", 20)
    assert (rollout.current_stage, figures["reason"]) == (1, "quality_inconclusive")


def test_stale_labels_in_the_middle__the_judge_is_what_it_was(judged: Judged, judge: OnlineEvaluation) -> None:
    stands(judged, State.CALIBRATED, 0.6)
    rollout = judged.rollout(entry(judge, required=True), stages=HALF)
    judged.passing_metrics(rollout)
    stands(judged, State.STALE, None, Missing.RECENT_LABELS)
    judged.scores(rollout, judge, range(60, 20, -1), GOOD, GOOD)
    judged.look(rollout)
    assert rollout.current_stage == 2


def labelled(judged: Judged) -> OnlineEvaluation:
    project = judged.api.project
    evaluator = make_evaluator(project, "judge", name="polite", criteria=[CRITERION], model="openai/gpt-4o")
    return matched(project, evaluator, monthly_budget_usd=Decimal(10), label_share=0.5)


def label(task: EvaluationTask, value: float | None) -> None:
    at = task.due_at + timedelta(minutes=10)
    changes = {"label_due": True, "label": value, "labelled_at": at if value is not None else None}
    EvaluationTask.objects.filter(pk=task.pk).update(**changes)


def test_labels__that_find_no_difference__correct_a_judge_that_dislikes_the_target(judged: Judged) -> None:
    sample = labelled(judged)
    rollout = judged.rollout(entry(sample, required=True, action="roll_back"), minutes_ago=20 * 24 * 60)
    [shown] = judged.api.get(str(rollout.pk))["quality"]
    assert (shown["label_share"], shown["action"], shown["calibration"]) == (0.5, "roll_back", "uncalibrated")
    judged.requests(rollout, 40)
    long_ago = 10 * 24 * 60
    tasks = judged.scores(rollout, sample, range(long_ago + 30, long_ago, -1), [0.6] * 10, [1.0] * 10, label_share=0.5)
    for number, task in enumerate(tasks):
        if number % 2:
            label(task, 1.0)
    judged.look(rollout)
    figures = figures_of(rollout)
    [one] = figures["quality"]["evaluators"]
    assert rollout.status == "running"
    assert (one["pairs"], one["tasks"]["target"]["labelled"]) == (300, 150)
    assert list(figures["quality"]["through"]) == ["labels"]
    assert one["status"] != "failing"


@pytest.mark.usefixtures("totals")
def test_label__that_is_due__its_minute_waits_and_a_later_change_changes_nothing(judged: Judged) -> None:
    sample = labelled(judged)
    rollout = judged.rollout(entry(sample), minutes_ago=20 * 24 * 60)
    judged.requests(rollout, 40)
    days_ago = 3 * 24 * 60
    first, second = judged.scores(rollout, sample, range(days_ago, days_ago - 1, -1), [1.0], [1.0], label_share=0.5)
    for task in (first, second):
        label(task, None)
    judged.look(rollout, ago=2)
    assert figures_of(rollout)["quality"]["evaluators"][0]["tasks"]["target"]["due"] == 0
    assert state_of(rollout) == (0, 0)
    [one] = judged.metrics(rollout)["quality"]["evaluators"]
    assert {arm: one["tasks"][arm]["labels_awaited"] for arm in one["tasks"]} == {"target": 1, "baseline": 1}
    assert one["explanation"] == (
        "Nothing to compare yet. Few labels have checked this judge so far. It waits for 2 labels that people have to"
        " give."
    )
    label(first, 1.0)
    label(second, 0.0)
    judged.look(rollout, ago=1)
    assert state_of(rollout) == (1, 1)
    [one] = judged.metrics(rollout)["quality"]["evaluators"]
    assert "labels that people" not in one["explanation"]
    before = figures_of(rollout)
    label(first, 0.0)
    judged.look(rollout)
    assert figures_of(rollout)["quality"]["evaluators"] == before["quality"]["evaluators"]


def test_labels__of_another_share_in_the_middle__the_evaluator_decides_nothing_any_more(judged: Judged) -> None:
    sample = labelled(judged)
    rollout = judged.rollout(entry(sample, required=True), minutes_ago=20 * 24 * 60)
    judged.requests(rollout, 40)
    judged.scores(rollout, sample, range(40, 30, -1), BAD, GOOD, label_share=0.1)
    judged.look(rollout)
    [one] = figures_of(rollout)["quality"]["evaluators"]
    assert (one["drifted"], one["pairs"]) == (True, 0)


def test_label_share__changed_in_the_middle__judges_up_to_the_change_however_late_anybody_looks(
    judged: Judged,
) -> None:
    sample = labelled(judged)
    rollout = judged.rollout(entry(sample), minutes_ago=20 * 24 * 60)
    judged.requests(rollout, 40)
    long_ago = 10 * 24 * 60
    judged.scores(rollout, sample, range(long_ago + 9, long_ago, -1), GOOD, GOOD, label_share=0.5)
    path, change = f"/api/llm/online-evaluations/{sample.pk}", {"label_share": 0.2}
    assert judged.api.client.patch(path, change, format="json").json()["label_share"] == 0.2
    judged.scores(rollout, sample, range(long_ago, long_ago - 9, -1), BAD, GOOD, label_share=0.2)
    judged.scores(rollout, sample, range(long_ago - 9, long_ago - 20, -1), BAD, GOOD, label_share=0.5)
    judged.look(rollout)
    [one] = figures_of(rollout)["quality"]["evaluators"]
    assert (one["drifted"], one["pairs"], one["status"]) == (True, 90, "inconclusive")


@pytest.mark.parametrize("share", [None, 0])
def test_label_share__changed_in_the_middle_of_a_rollout_without_labels__changes_nothing(
    judged: Judged, judge: OnlineEvaluation, share: float | None
) -> None:
    stands(judged, State.CALIBRATED, 0.6)
    rollout = judged.rollout(entry(judge, label_share=share, action="roll_back"))
    judged.requests(rollout, 40)
    judged.scores(rollout, judge, range(40, 38, -1), BAD, GOOD)
    judged.scores(rollout, judge, range(38, 36, -1), BAD, GOOD, label_share=0.2, label_due=True)
    judged.look(rollout)
    [one] = figures_of(rollout)["quality"]["evaluators"]
    assert (rollout.status, one["drifted"], one["pairs"]) == ("rolled_back", False, 40)


def test_label_share__of_0__does_not_wait_for_labels(judged: Judged) -> None:
    sample = labelled(judged)
    rollout = judged.rollout(entry(sample, label_share=0))
    [shown] = judged.api.get(str(rollout.pk))["quality"]
    assert shown["label_share"] is None
    judged.requests(rollout, 40)
    for task in judged.scores(rollout, sample, range(40, 36, -1), BAD, GOOD, label_share=0.5):
        label(task, None)
    judged.look(rollout)
    assert figures_of(rollout)["reason"] == "quality_failing"


def test_label_share__other_than_the_sample_has__refused(judged: Judged) -> None:
    sample = labelled(judged)
    response = judged.api.create(quality=[entry(sample, label_share=0.2)])
    assert response.status_code == 400
    [problem] = response.json()["error"]["details"]["quality.0.label_share"]
    assert problem.startswith("The online evaluation of this evaluator has a label_share of 0.5")


def state_of(rollout: Rollout) -> tuple[int, int]:
    """Returns how many tasks of either arm wait in the open block."""
    state = from_json(QualityState, RolloutQuality.objects.get(pk=rollout.pk).state)
    [one] = state.evaluators
    return len(state.of(one.title).open_target), len(state.of(one.title).open_baseline)
