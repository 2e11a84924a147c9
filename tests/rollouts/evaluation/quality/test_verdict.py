"""The verdict of evaluators: what fails, what holds, what may pass, and that it can be replayed."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rollouts.evaluation import Action, Status, from_json, to_json
from rollouts.evaluation.policy import ALPHA
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
    replay_quality,
)
from rollouts.evaluation.quality.assess import NotPassing, figures_of
from rollouts.evaluation.quality.blocks import cluster_sums
from rollouts.evaluation.quality.rules import QUALITY_ALPHA, UNSCORED_ALPHA

WEIGHTS = (10, 50, 100)
JUDGE = Evaluator("judge@1", Action.ROLL_BACK, required=True, margin_scale=0.7)


def arm(good: float, count: int, rng: random.Random, *, missing: float = 0.0, share: float = 0.0) -> ArmTasks:
    """Returns tasks whose scores and labels are good with this chance."""
    tasks = []
    for _ in range(count):
        is_good = float(rng.random() < good)
        due = rng.random() < share
        score = None if rng.random() < missing else is_good
        tasks.append(Task(rng.getrandbits(48), score, due, is_good if due else None))
    return ArmTasks(tuple(tasks))


def minutes(
    titles: Sequence[str],
    *,
    target: float,
    baseline: float,
    count: int = 20,
    missing: float = 0.0,
    share: float = 0.0,
    basis: Basis = Basis.SCORES,
) -> list[QualityMinute]:
    """Returns minutes of both stages with ten tasks of each arm."""
    rng = random.Random(f"{titles} {target} {baseline}")
    return [
        QualityMinute(
            number,
            1 + number // (count // 2 + 1),
            basis,
            {
                title: EvaluatorTasks(
                    arm(target, 10, rng, missing=missing, share=share), arm(baseline, 10, rng, share=share)
                )
                for title in titles
            },
        )
        for number in range(1, count + 1)
    ]


def begun(*evaluators: Evaluator, sticky: bool = False) -> QualityState:
    return initial_quality(evaluators, weights=WEIGHTS, sticky=sticky)


def test_alpha__with_all_metrics__is_5_percent() -> None:
    assert math.fsum(ALPHA.values()) + QUALITY_ALPHA + UNSCORED_ALPHA == pytest.approx(0.05)


@pytest.mark.parametrize("action", Action)
def test_scores_far_worse__fail_with_the_evaluators_action_unless_it_is_ignored(action: Action) -> None:
    state = replay_quality(begun(replace(JUDGE, action=action)), minutes(["judge@1"], target=0.3, baseline=0.9))
    found = assess_quality(state)

    assert found.evaluators["judge@1"].worse
    if action is Action.IGNORE:
        assert (found.status, found.judged, found.action) == (Status.PASSING, False, None)
    else:
        assert (found.status, found.action, found.required) == (Status.FAILING, action, ("judge@1",))


def test_certain_and_small__does_not_fail() -> None:
    """Each pair loses a point: certain after many, and too little to act on."""
    one = EvaluatorTasks(
        ArmTasks(tuple(Task(order, 0.48) for order in range(10))),
        ArmTasks(tuple(Task(order, 0.52) for order in range(10))),
    )
    state = replay_quality(
        begun(replace(JUDGE, margin_scale=1.0)),
        [QualityMinute(number, 1, Basis.SCORES, {"judge@1": one}) for number in range(1, 60)],
    )
    found = assess_quality(state)

    assert found.evaluators["judge@1"].evidence > math.log(1 / QUALITY_ALPHA)
    assert found.action is None


def test_equal_scores__pass_once_certain() -> None:
    counts = minutes(["judge@1"], target=0.9, baseline=0.9, count=200)

    early, late = (assess_quality(replay_quality(begun(JUDGE), counts[:number])) for number in (2, 200))

    assert (early.status, early.evaluators["judge@1"].not_passing) == (Status.INCONCLUSIVE, NotPassing.NOT_CERTAIN)
    assert (late.status, late.required) == (Status.PASSING, ())


@pytest.mark.parametrize("scale", [None, 0.0, -0.2])
def test_uncalibrated_judge__fails_and_never_passes(scale: float | None) -> None:
    judge = replace(JUDGE, margin_scale=scale)
    good = replay_quality(begun(judge), minutes(["judge@1"], target=1.0, baseline=0.5, count=100))
    bad = replay_quality(begun(judge), minutes(["judge@1"], target=0.3, baseline=0.9))

    assert assess_quality(good).evaluators["judge@1"].not_passing is NotPassing.UNCALIBRATED
    assert assess_quality(good).status is Status.INCONCLUSIVE
    assert assess_quality(bad).action is Action.ROLL_BACK


def test_missing_scores_of_the_target__hold_and_do_not_pass() -> None:
    state = replay_quality(begun(JUDGE), minutes(["judge@1"], target=1.0, baseline=0.9, missing=0.3, count=60))
    found = assess_quality(state)

    assert (found.unscored, found.action, found.status) == (True, None, Status.INCONCLUSIVE)
    assert found.evaluators["judge@1"].not_passing is NotPassing.MISSING_SCORES


def test_weaker_action__does_not_add_to_what_rolls_back() -> None:
    """One evaluator that rolls back has found nothing; the other one is certain and may only hold."""
    rules = replace(JUDGE, title="a"), Evaluator("b", Action.HOLD)
    worse, alike = minutes(["b"], target=0.2, baseline=0.9), minutes(["a"], target=0.9, baseline=0.9)
    both = [
        replace(one, evaluators={**one.evaluators, **other.evaluators}) for one, other in zip(worse, alike, strict=True)
    ]

    assert assess_quality(replay_quality(begun(*rules), both)).action is Action.HOLD


def test_drifted_judge__decides_nothing_from_then_on() -> None:
    counts = minutes(["judge@1"], target=0.3, baseline=0.9)
    first = replace(counts[2], evaluators={"judge@1": EvaluatorTasks(drifted=True)})
    state = replay_quality(begun(JUDGE), [*counts[:2], first, *counts[3:]])
    found = assess_quality(state)

    assert found.action is None
    assert found.evaluators["judge@1"].not_passing is NotPassing.JUDGE_DRIFTED
    assert state.of("judge@1").target.due == 20


def test_labels__judge_that_sees_no_difference__fail_and_show_the_labels() -> None:
    """The judge calls everything good, and people do not."""
    counts = minutes(["judge@1"], target=0.3, baseline=0.9, share=0.5, basis=Basis.LABELS, count=60)

    def blind(tasks: ArmTasks) -> ArmTasks:
        return ArmTasks(tuple(replace(task, score=1.0) for task in tasks.tasks))

    seen = [
        replace(
            one,
            evaluators={
                title: EvaluatorTasks(blind(tasks.target), blind(tasks.baseline))
                for title, tasks in one.evaluators.items()
            },
        )
        for one in counts
    ]
    state = replay_quality(begun(replace(JUDGE, label_share=0.5)), seen)
    shown = figures_of(state, "judge@1")

    assert assess_quality(state).action is Action.ROLL_BACK
    assert shown.difference is not None and shown.low is not None and shown.high is not None
    assert shown.low < -0.6 < shown.high
    assert shown.high < 0


def test_sticky__nothing_is_judged_before_the_clustering_is_known() -> None:
    state = replay_quality(begun(JUDGE, sticky=True), minutes(["judge@1"], target=0.3, baseline=0.9))

    assert state.of("judge@1").evidence == pytest.approx(0.0)
    assert assess_quality(state).action is None


@pytest.mark.parametrize(("stage", "action"), [(1, Action.HOLD), (2, Action.ROLL_BACK)])
def test_sticky__users_who_fare_worse__roll_back_where_both_arms_are_sampled_alike(stage: int, action: Action) -> None:
    """At a weight of 10 % fewer of the baseline's tasks are due than of the target's, so that only busy users count."""

    def users(score: float, minute: int, arm: int) -> ArmTasks:
        made = [
            tuple(Task(minute * 100 + number * 10 + place, score, user=number) for place in range(5))
            for number in range(10)
        ]
        sums = cluster_sums([[score] * 5] * 10)
        return ArmTasks(tuple(task for user in made for task in user), tuple(made), sums)

    counts = [
        QualityMinute(
            number, stage, Basis.SCORES, {"judge@1": EvaluatorTasks(users(0.0, number, 0), users(1.0, number, 1))}
        )
        for number in range(1, 6)
    ]

    assert assess_quality(replay_quality(begun(JUDGE, sticky=True), counts)).action is action


def test_sticky__one_user_in_the_target_with_bad_answers__holds() -> None:
    def tasks(score: float, users: range, minute: int) -> ArmTasks:
        made = [Task(minute * 1000 + order, score, user=users[order % len(users)]) for order in range(10)]
        return ArmTasks(tuple(made), clusters=cluster_sums([[score] * minute] * len(users)))

    counts = [
        QualityMinute(
            minute,
            1,
            Basis.SCORES,
            {"judge@1": EvaluatorTasks(tasks(0.0, range(1), minute), tasks(1.0, range(1, 11), minute))},
        )
        for minute in range(1, 100)
    ]

    assert assess_quality(replay_quality(begun(JUDGE, sticky=True), counts)).action is Action.HOLD


def sticky_minutes(in_target: int, in_baseline: int) -> list[QualityMinute]:
    """Returns minutes in which so many users get ten answers of each arm, in turn: those of the target bad ones."""
    totals: tuple[list[list[float]], list[list[float]]] = (
        [[] for _ in range(in_target)],
        [[] for _ in range(in_baseline)],
    )
    found = []
    for minute in range(1, 21):
        arms = []
        for score, users in enumerate(totals):
            made = [minute * 10 + place for place in range(10)]
            for number in made:
                # Every seventh answer is otherwise, so that the scores of an arm are not all alike.
                users[number % len(users)].append(float(score) if number % 7 else 1.0 - score)
            tasks = [Task(number, users[number % len(users)][-1], user=number % len(users)) for number in made]
            arms.append(ArmTasks(tuple(tasks), clusters=cluster_sums(users)))
        target, baseline = arms
        found.append(QualityMinute(minute, 1, Basis.SCORES, {"judge@1": EvaluatorTasks(target, baseline)}))
    return found


@pytest.mark.parametrize(
    ("in_target", "in_baseline", "action"),
    [(200, 200, Action.ROLL_BACK), (3, 200, Action.HOLD), (200, 3, Action.HOLD)],
)
def test_sticky__bad_scores_of_few_users__hold_and_do_not_roll_back(
    in_target: int, in_baseline: int, action: Action
) -> None:
    state = replay_quality(begun(JUDGE, sticky=True), sticky_minutes(in_target, in_baseline))

    assert assess_quality(state).action is action


def test_replay__from_json_at_every_minute__the_same_to_the_last_digit() -> None:
    evaluators = (JUDGE, Evaluator("rule@2"), replace(JUDGE, title="labelled@1", label_share=0.2))
    counts = [
        *minutes(["judge@1", "rule@2"], target=0.8, baseline=0.9, missing=0.1),
        *minutes(["labelled@1"], target=0.8, baseline=0.9, share=0.2, basis=Basis.LABELS),
    ]
    whole = replay_quality(begun(*evaluators), counts)
    state = begun(*evaluators)
    for one in counts:
        stored = json.loads(json.dumps(to_json(state)))
        minute = from_json(QualityMinute, json.loads(json.dumps(to_json(one))))
        state = advance_quality(from_json(QualityState, stored), minute)

    assert state == whole
    assert to_json(assess_quality(state)) == to_json(assess_quality(whole))


def test_late_tasks__of_an_earlier_stage__are_a_block_of_their_own() -> None:
    counts = minutes(["judge@1"], target=0.5, baseline=0.9)
    state = replay_quality(begun(JUDGE), counts)
    late = replace(counts[0], minute=counts[-1].minute + 1, stage=1)
    after = advance_quality(state, late)

    assert after.of("judge@1").pairs == state.of("judge@1").pairs + 10
    assert after.bases[Basis.SCORES].stage == 2


def test_minutes__that_do_not_follow_or_are_unknown__are_refused() -> None:
    state = advance_quality(begun(JUDGE), QualityMinute(5, 1, Basis.SCORES))
    wrong = {"judge@1": EvaluatorTasks(ArmTasks((Task(1, 1.5),)))}
    short = {"judge@1": EvaluatorTasks(ArmTasks(users=((Task(1, 1.0),),)))}

    for minute, message in (
        (QualityMinute(5, 1, Basis.SCORES), "does not follow"),
        (QualityMinute(6, 4, Basis.SCORES), "no stage 4"),
        (QualityMinute(6, 1, Basis.LABELS), "basis"),
        (QualityMinute(6, 1, Basis.SCORES, {"other": EvaluatorTasks()}), "other"),
        (QualityMinute(6, 1, Basis.SCORES, wrong), "score: 1.5"),
        (QualityMinute(6, 1, Basis.SCORES, short), "5 tasks"),
    ):
        with pytest.raises(ValueError, match=message):
            advance_quality(state, minute)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"margin": 0.0}, "margin"), ({"label_share": 0.0}, "label_share"), ({"margin_scale": 1.1}, "margin_scale")],
)
def test_evaluator__impossible_numbers__are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Evaluator("judge@1", **values)  # type: ignore[arg-type]


def test_initial__no_stage_or_two_of_one_title__is_refused() -> None:
    with pytest.raises(ValueError, match="stage"):
        initial_quality([JUDGE], weights=(), sticky=False)
    with pytest.raises(ValueError, match="title"):
        begun(JUDGE, JUDGE)
