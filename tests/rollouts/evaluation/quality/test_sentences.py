"""What a rollout says of its evaluators: never to wait where waiting cannot help, and who has not been checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rollouts.evaluation import Action, Decision, Reason, assess
from rollouts.evaluation.quality import (
    ArmTasks,
    Basis,
    Evaluator,
    EvaluatorTasks,
    QualityMinute,
    QualityState,
    Task,
    assess_quality,
    initial_quality,
    replay_quality,
)
from rollouts.evaluation.quality.assess import NotPassing
from rollouts.evaluation.quality.sentences import Judged, explain_evaluator
from rollouts.evaluation.reasons import explain_decision
from rollouts.states import Stage
from tests.rollouts.evaluation.minutes import after_minutes, arm, start

RULE = Evaluator("schema@1", Action.ROLL_BACK, required=True)
RAW = Evaluator("tone@1", Action.HOLD, required=True, margin_scale=None)
LABELLED = replace(RAW, label_share=1.0)
GOOD, BAD, NONE = 1.0, 0.0, None
STAGE = Stage(50, 30, 20)
NOTHING_SEEN = after_minutes(start(), 2, arm(10, ms=(300,) * 10), arm(10, ms=(300,) * 10))


def after(
    rule: Evaluator,
    target: Sequence[float | None],
    baseline: Sequence[float | None],
    *,
    minutes: int = 60,
    label: float | None = None,
    drifted: bool = False,
) -> Judged:
    """Returns where an evaluator stands after so many minutes with these scores."""

    def tasks(minute: int, scores: Sequence[float | None]) -> ArmTasks:
        due = rule.label_share is not None
        return ArmTasks(tuple(Task(minute * 100 + place, one, due, label) for place, one in enumerate(scores)))

    counts = [
        QualityMinute(
            number,
            1,
            rule.basis,
            {rule.title: EvaluatorTasks(tasks(number, target), tasks(number, baseline), drifted and number == minutes)},
        )
        for number in range(1, minutes + 1)
    ]
    state: QualityState = replay_quality(initial_quality([rule], weights=(50, 100), sticky=False), counts)
    return Judged(state, assess_quality(state))


def decision(judged: Judged, reason: Reason) -> str:
    return explain_decision(NOTHING_SEEN, assess(NOTHING_SEEN), STAGE, Decision.WAIT, reason, 60, judged)


ALIKE = [GOOD] * 10
STUCK = {
    NotPassing.UNCALIBRATED: (after(RAW, ALIKE, ALIKE), "label some to calibrate its judge before the next rollout"),
    NotPassing.JUDGE_DRIFTED: (after(RULE, ALIKE, ALIKE, drifted=True), "calibrate its judge again"),
    NotPassing.MISSING_SCORES: (after(RULE, [GOOD, NONE], [GOOD, NONE]), "find out why scores are missing"),
    NotPassing.LABELS_UNRELIABLE: (after(LABELLED, ALIKE, ALIKE, label=GOOD), "let a second person label"),
}


@pytest.mark.parametrize("reason", [Reason.INCONCLUSIVE, Reason.QUALITY_INCONCLUSIVE])
@pytest.mark.parametrize("why", NotPassing)
def test_required__each_reason_not_to_pass__says_wait_only_where_that_helps(why: NotPassing, reason: Reason) -> None:
    if why is NotPassing.NOT_CERTAIN:
        text = decision(after(RULE, ALIKE, ALIKE, minutes=1), reason)
        assert text.endswith(
            ("Wait for more requests, or promote by hand.", "Wait for more scores, or promote by hand.")
        )
        return
    judged, step = STUCK[why]
    [title] = judged.assessment.required
    assert judged.assessment.evaluators[title].not_passing is why

    text = decision(judged, reason)

    assert "It will not pass by waiting: " in text
    assert step in text
    assert "Wait" not in text


def test_required__labels_are_due__says_to_give_them() -> None:
    judged = after(LABELLED, ALIKE, ALIKE, minutes=1, label=GOOD)

    assert decision(judged, Reason.QUALITY_INCONCLUSIVE).endswith("Label the answers that are due, or promote by hand.")
    assert decision(judged, Reason.INCONCLUSIVE).endswith(
        "Wait for more requests and label the answers that are due, or promote by hand."
    )


@pytest.mark.parametrize("target", [[BAD] * 10, [*[BAD] * 2, *[GOOD] * 8], ALIKE, [NONE] * 10])
@pytest.mark.parametrize("minutes", [1, 3, 60])
def test_unchecked_judge__every_sentence__says_so(target: list[float | None], minutes: int) -> None:
    for action in Action:
        judged = after(
            replace(RAW, action=action, required=action is not Action.IGNORE), target, ALIKE, minutes=minutes
        )
        assert "uncalibrated" in explain_evaluator(judged, RAW.title)
        if judged.assessment.action is not None:
            assert "uncalibrated" in decision(judged, Reason.QUALITY_FAILING)
        if judged.assessment.unscored:
            assert "uncalibrated" in decision(judged, Reason.QUALITY_UNSCORED)
        if judged.assessment.required:
            assert "uncalibrated" in decision(judged, Reason.INCONCLUSIVE)


def test_unchecked_judge__failing__asks_for_labels_and_a_rule_does_not() -> None:
    by_judge, by_rule = (decision(after(one, [BAD] * 10, ALIKE), Reason.QUALITY_FAILING) for one in (RAW, RULE))

    assert by_judge == (
        "tone@1: 0 % against 100 % (this judge is uncalibrated: too few current labels have checked it). Certain enough"
        " to hold. Label some of the answers with low scores to learn whether people agree, and mend the version if"
        " they do, or promote by hand to accept it."
    )
    assert "label" not in by_rule.lower()


def test_labels_that_repeat_a_judge__said_of_what_fails_by_them() -> None:
    rule = replace(LABELLED, action=Action.ROLL_BACK)
    state = initial_quality([rule], weights=(50, 100), sticky=False)
    target, baseline = (ArmTasks(tuple(Task(place, one, True, one) for place in range(10))) for one in (BAD, GOOD))
    tasks = {rule.title: EvaluatorTasks(target, baseline)}
    counts = [QualityMinute(number, 1, Basis.LABELS, tasks) for number in range(1, 61)]
    state = replay_quality(state, counts)
    judged = Judged(state, assess_quality(state))

    assert judged.assessment.action is Action.HOLD
    assert explain_evaluator(judged, rule.title).endswith("certain enough to hold. Its labels only repeat this judge.")


def test_metrics__exact_signals_without_an_event__are_one_line() -> None:
    text = explain_decision(NOTHING_SEEN, assess(NOTHING_SEEN), STAGE, Decision.WAIT, Reason.INCONCLUSIVE, 60)

    assert text.startswith("Not certain yet: Unanswered; Errors; Latency, slowest 5 %; no answer is broken, cut off,")
    assert "no answer is broken, cut off, empty or another model's so far (20 " in text

    broken = after_minutes(start(), 2, arm(10, ms=(300,) * 10, contract=1), arm(10, ms=(300,) * 10))
    text = explain_decision(broken, assess(broken), STAGE, Decision.WAIT, Reason.INCONCLUSIVE, 60)
    assert "Breaks its schema; " in text
    assert "no answer is cut off, empty or another model's so far" in text


def test_metrics__one_model_without_a_price__is_not_waited_for() -> None:
    state = after_minutes(start(), 30, arm(10, ms=(300,) * 10, usd=("0.001",) * 10), arm(10, ms=(300,) * 10))
    text = explain_decision(state, assess(state), STAGE, Decision.WAIT, Reason.INCONCLUSIVE, 60)

    assert text.endswith("It will not pass by waiting: set a price for the model that has none, or promote by hand.")
