"""The worked example of docs/quality.md, recalculated by the functions that decide."""

from __future__ import annotations

import math
import re
from uuid import UUID

import pytest

from analytics.online_evaluations.sampling import position_of
from rollouts.evaluation import Action
from rollouts.evaluation.pairs import STAKES
from rollouts.evaluation.policy import PASS_AT
from rollouts.evaluation.quality import (
    ArmTasks,
    Basis,
    Evaluator,
    EvaluatorTasks,
    QualityMinute,
    QualityState,
    Task,
    advance_quality,
    assess_quality,
    initial_quality,
)
from rollouts.evaluation.quality.rules import FIRST_SHARE, QUALITY_FAILS_AT, QUALITY_SIZE, UNSCORED_FAILS_AT
from rollouts.evaluation.quality.values import LabelSums, Prediction, reach, value_of
from tests.worked_examples import example_of, rows

JUDGE = Evaluator("names a source", Action.ROLL_BACK, required=True, margin_scale=0.6)
LABELLED = Evaluator("names a source", label_share=0.2)


@pytest.fixture(scope="module")
def example() -> str:
    return example_of("quality.md")


@pytest.fixture(scope="module")
def text(example: str) -> str:
    return " ".join(example.split())


def score_of(cell: str) -> float | None:
    return None if cell == "none" else float(cell)


def first_minute(example: str) -> EvaluatorTasks:
    pairs = rows(example, "Pair")[1:]
    target, baseline = (tuple(Task(int(cells[0]), score_of(cells[arm])) for cells in pairs) for arm in (1, 2))
    return EvaluatorTasks(ArmTasks(target), ArmTasks(baseline))


def later_minute(lost: int, won: int, alike: int, missing: int) -> EvaluatorTasks:
    scores = [(0.0, 1.0)] * lost + [(1.0, 0.0)] * won + [(1.0, 1.0)] * alike + [(None, 1.0)] * missing
    target, baseline = (tuple(Task(order, pair[arm]) for order, pair in enumerate(scores)) for arm in (0, 1))
    return EvaluatorTasks(ArmTasks(target), ArmTasks(baseline))


def states(example: str) -> list[QualityState]:
    """Returns the states after each minute of the table."""
    state, found = initial_quality([JUDGE], weights=(10, 50, 100), sticky=False), []
    for cells in rows(example, "Minute")[1:]:
        number, *counts = map(int, cells[:5])
        tasks = first_minute(example) if number == 1 else later_minute(*counts)
        state = advance_quality(state, QualityMinute(number, 1, Basis.SCORES, {JUDGE.title: tasks}))
        found.append(state)
    return found


def test_sample__hash_of_the_ids__is_below_the_rate(example: str, text: str) -> None:
    [(rollout, evaluator, request)] = set(
        re.findall(r"`([0-9a-f-]{36}):eval:([0-9a-f-]{36}):([0-9a-f-]{36})`", example)
    )
    position = position_of(UUID(rollout), UUID(evaluator), UUID(request))

    assert f"are the number {position}, which is {position / 2**63:.4f} of the largest" in text
    assert position / 2**63 < 0.5


def test_pairs__differences_and_words__as_the_scores_say(example: str) -> None:
    for _, target, baseline, difference, word in rows(example, "Pair")[1:]:
        own, theirs = score_of(target), score_of(baseline)
        if own is None or theirs is None:
            assert (difference, word.split(":")[0]) == ("", "missing")
        else:
            assert float(difference) == own - theirs
            assert word == {-1: "lost", 0: "alike", 1: "won"}[int(own - theirs)]


def test_first_minute__bets_on_worse__as_by_hand(example: str, text: str) -> None:
    first, words = states(example)[0], [cells[-1] for cells in rows(example, "Pair")[1:]]
    lost, won = words.count("lost"), words.count("won")
    paid = [(1 + stake) ** lost * (1 - stake) ** won for stake in STAKES]

    stakes, shown = rows(example, "Stake")
    assert [float(stake) for stake in stakes[1:]] == list(STAKES)
    assert shown[1:] == [f"{one:.4f}" for one in paid]
    assert f"{' x '.join(['1.2'] * lost + ['0.8'] * won)} = {1.2**lost * 0.8**won:.4f}" in text
    mean, evidence = sum(paid) / len(paid), math.exp(first.of(JUDGE.title).evidence)
    assert f"Their mean is {mean:.4f}." in text
    assert f"E = 0.8 x {mean:.4f} + 0.2 x 1 = {evidence:.4f}." in text
    assert evidence == pytest.approx(FIRST_SHARE * mean + 1 - FIRST_SHARE)


def test_first_minute__bets_on_not_worse__as_by_hand(example: str, text: str) -> None:
    words = [cells[-1] for cells in rows(example, "Pair")[1:]]
    margin = JUDGE.margin * 0.6

    def paid(stake: float, difference: float) -> float:
        return 1 + stake * (difference + margin) / (1 + margin)

    def purse(stake: float) -> float:
        lost, won = words.count("lost") + 1, words.count("won")
        return paid(stake, -1) ** lost * paid(stake, 1) ** won * paid(stake, 0) ** words.count("alike")

    assert f"0.10 x 0.6 = {margin:.2f}" in text
    assert f"1 + 0.2 x (-1 + 0.06) / (1 + 0.06) = {paid(0.2, -1):.4f}" in text
    assert f"the won one by {paid(0.2, 1):.1f}" in text
    assert f"1 + 0.2 x 0.06 / 1.06 = {paid(0.2, 0):.4f}" in text
    safety = math.exp(states(example)[0].of(JUDGE.title).safety)
    assert f"S = {safety:.4f}." in text
    assert safety == pytest.approx(sum(map(purse, STAKES)) / len(STAKES))


def test_every_minute__evidence_and_verdict__as_the_page_says(example: str) -> None:
    heading, *minutes = rows(example, "Minute")
    for cells, state in zip(minutes, states(example), strict=True):
        one, found = state.of(JUDGE.title), assess_quality(state)
        assert float(cells[5]) == pytest.approx(math.exp(one.evidence), rel=0.005)
        assert float(cells[6]) == pytest.approx(math.exp(one.safety), abs=0.005)
        assert cells[7] == ("wait" if found.action is None else found.action.value.replace("_", " "))

    assert heading[5:7] == [f"E of {math.exp(QUALITY_FAILS_AT):.0f}", f"S of {math.exp(PASS_AT):.0f}"]
    words = [cells[-1].split(":")[0] for cells in rows(example, "Pair")[1:]]
    assert [int(cell) for cell in minutes[0][1:5]] == [
        words.count(word) for word in ("lost", "won", "alike", "missing")
    ]


def test_verdict__means_and_missing_scores__as_the_page_says(example: str, text: str) -> None:
    last = states(example)[-1]
    one, found = last.of(JUDGE.title), assess_quality(last)
    shown = found.evaluators[JUDGE.title].figures

    assert found.action is Action.ROLL_BACK
    assert shown.target is not None
    assert shown.baseline is not None
    assert f"After {one.pairs} pairs" in text
    assert f"{shown.target:.1%} against {shown.baseline:.1%}".replace("%", " %") in text
    assert f"more than {QUALITY_SIZE * 100:.0f} points" in text
    assert shown.baseline - shown.target > QUALITY_SIZE
    assert f"Of the target's {one.target.due} scores {one.target.missing} are missing" in text
    assert one.baseline.missing == 0
    certain = math.exp(UNSCORED_FAILS_AT)
    assert f"`unscored` is {math.exp(one.unscored_evidence):.1f} of {certain:,.0f}" in text
    assert not found.unscored


def test_labels__what_an_answer_counts_as__as_the_page_says(example: str) -> None:
    for judge, person, counts, formula in rows(example, "Judge says")[1:]:
        due, label = person != "not asked", {"good": 1.0, "bad": 0.0}.get(person)
        value = value_of(Task(0, float(judge), due, label), LABELLED, Prediction())

        assert float(counts) == pytest.approx(value.low) == pytest.approx(value.high)
        if due:
            predicted = Prediction().of(float(judge))
            assert formula == f"{predicted:.2f} + ({label:.0f} - {predicted:.2f}) / 0.2"


def test_labels__mean_over_who_is_asked__is_what_people_say(text: str) -> None:
    def mean(score: float, label: float) -> float:
        asked, not_asked = (value_of(Task(0, score, due, label), LABELLED, Prediction()).low for due in (True, False))
        return 0.2 * asked + 0.8 * not_asked

    assert mean(0.0, 1.0) == pytest.approx(1.0)
    assert mean(1.0, 0.0) == pytest.approx(0.0)
    assert "0.8 x 0.25 + 0.2 x 4 = 1" in text
    assert "0.8 x 0.75 + 0.2 x -3 = 0" in text
    assert f"(1 + 0.5 x 0.8) / 0.2 = {reach(LABELLED, Prediction()):.0f}" in text


def test_labels__forty_of_earlier_blocks__predict_as_the_page_says(text: str) -> None:
    tasks = [
        Task(0, score, True, label)
        for score, label, number in ((1.0, 1.0, 28), (1.0, 0.0, 2), (0.0, 1.0, 4), (0.0, 0.0, 6))
        for _ in range(number)
    ]
    found = LabelSums().with_tasks(tasks).prediction

    assert "Of 40 labelled answers the judge called 30 good, 28 of them rightly" in text
    assert f"a score of 1 now predicts {found.of(1.0):.4f}, and one of 0 predicts {found.of(0.0):.1f}" in text
