from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from analytics.evaluators.calibration.states import State as Calibrated
from analytics.evaluators.definitions import UserFeedback
from analytics.online_evaluations.reasons import reasons_in_words
from analytics.online_evaluations.worst_pairs import Pair, ScoredAnswer, worst_pairs
from analytics.queries.variants import BASELINE, TARGET
from console.rollouts.links import MORE_LABELS, Link
from core.roles import Right
from core.ui.formats import number, share
from core.ui.pages import Visit
from rollouts.comparison.metrics import latest_figures
from rollouts.comparison.quality import quality_of
from rollouts.comparison.tables import MetricRow, change, difference, e_value, mark_of, row_of
from rollouts.evaluation.quality.rules import QUALITY_SIZE
from rollouts.models import Rollout
from rollouts.quality.entries import RULE, RolloutEvaluator, evaluators_of

_UNIT = "score"
_ARMS = (TARGET, BASELINE)
_BY_USERS = str(UserFeedback.__struct_config__.tag)
_UNITS = {"random": "requests", "user_sticky": "users", "session_sticky": "sessions"}
_CALIBRATIONS: Mapping[str, str] = {
    RULE: "a rule, which is right by definition",
    Calibrated.CALIBRATED.value: "a calibrated judge: its figures are its own, and nobody checks what it makes of this"
    " version; it can hold the rollout, and pass",
    Calibrated.UNCALIBRATED.value: "a judge that is not calibrated: it can hold the rollout, and not pass",
    Calibrated.STALE.value: "a judge whose labels are too old: it can hold the rollout, and not pass",
    Calibrated.DRIFTED.value: "a judge that judges otherwise than it did: it decides nothing",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """`tasks` has how many tasks of each arm were due, judged and missing."""

    shown: MetricRow
    calibration: str
    tasks: Sequence[tuple[str, str]]
    pairs: Sequence[_ShownPair]
    links: Sequence[Link]


@dataclass(frozen=True, slots=True)
class _ShownPair:
    target: Link
    baseline: Link
    difference: str


def scores(visit: Visit, row: Rollout) -> Mapping[str, Any]:
    found = quality_of(row, latest_figures(row))
    evaluators = {one.title: one for one in evaluators_of(row)}
    return {
        "asked": len(row.quality),
        "rows": [_row(visit, row, evaluators[one["title"]], one, found["goal"]) for one in found["evaluators"]]
        if found
        else [],
    }


def counted(tasks: Mapping[str, Any]) -> str:
    if not tasks["due"]:
        return "nothing due yet"
    text = f"{number(tasks['done'])} of {number(tasks['due'])} due judged"
    if tasks["missing"]:
        text += f", {number(tasks['missing'])} missing: {reasons_in_words(tasks['missing_by_reason'])}"
    waiting = tasks["due"] - tasks["done"] - tasks["missing"]
    return f"{text}; {number(waiting)} to be judged" if waiting else text


def _come(row: Rollout, tasks: Mapping[str, Any]) -> str:
    units = _UNITS[row.allocation_type]
    return f"{number(tasks['done'])} of {number(tasks['due'])} {units} have one, {number(tasks['missing'])} none yet"


def _row(
    visit: Visit, row: Rollout, evaluator: RolloutEvaluator, one: Mapping[str, Any], goal: Mapping[str, Any] | None
) -> _Row:
    numbers = [*_numbers(evaluator, one), *_of_goal(evaluator, goal)]
    tell = partial(_come, row) if evaluator.is_outcome else counted
    limit = {"limit": -evaluator.margin * (evaluator.scale or 1.0), "limit_name": "outside of the margin from here"}
    return _Row(
        shown=row_of(_UNIT, evaluator.title, mark_of(one["status"]), one, numbers, **limit),
        calibration=trust(evaluator),
        tasks=[(arm, tell(one["tasks"][arm])) for arm in _ARMS],
        pairs=[_pair(visit, pair) for pair in worst_pairs(row.pk, evaluator.version_id)],
        links=[link for link in _links(visit, evaluator) if link.href],
    )


def trust(evaluator: RolloutEvaluator) -> str:
    if evaluator.is_outcome:
        return f"an outcome that your application sends{', the goal of this A/B test' if evaluator.goal else ''}"
    if evaluator.kind == _BY_USERS:
        return "the ratings of users, as they are"
    if evaluator.label_share is not None and evaluator.calibration != RULE:
        return f"a judge, corrected by labels of people for {share(evaluator.label_share)} of what is due"
    return _CALIBRATIONS[evaluator.calibration]


def _numbers(evaluator: RolloutEvaluator, one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    is_raw_judge = evaluator.label_share is None and evaluator.calibration != RULE
    yield "Difference of the judge" if is_raw_judge else "Difference", difference(_UNIT, one)
    yield "Pairs", f"{number(one['pairs'])}, {number(one['complete_pairs'])} with both scores"
    yield "May fail from", change(_UNIT, -QUALITY_SIZE * (evaluator.scale or 1.0))
    yield "Margin", change(_UNIT, -evaluator.margin * (evaluator.scale or 1.0))
    yield "If it fails", evaluator.action.value.replace("_", " ")
    yield "Must pass", "from 50 % on" if evaluator.required else "no"
    yield "E that it is worse", e_value(one["evidence"])
    yield "E that it is not worse", f"{e_value(one['safety'])}, passes from {e_value(one['safety_threshold'])}"
    if one["user_evidence"] is not None:
        yield "E by users", e_value(one["user_evidence"])
    if due := _both(one, "labels_due"):
        yield "Labels", f"{number(_both(one, 'labelled'))} of {number(due)} due"
    if awaited := _both(one, "labels_awaited"):
        yield "Labels waited for", number(awaited)


def _of_goal(evaluator: RolloutEvaluator, goal: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if goal and evaluator.goal:
        decides = f"decides from {e_value(goal['threshold'])}"
        yield "E that it is better", f"{e_value(goal['evidence'])}, {decides}"
        yield f"E that it is not better by {change(_UNIT, evaluator.margin)}", f"{e_value(goal['safety'])}, {decides}"


def _both(one: Mapping[str, Any], name: str) -> int:
    return sum(one["tasks"][arm][name] for arm in _ARMS)


def _pair(visit: Visit, pair: Pair) -> _ShownPair:
    return _ShownPair(_answer(visit, pair.target), _answer(visit, pair.baseline), change(_UNIT, pair.difference))


def _answer(visit: Visit, one: ScoredAnswer) -> Link:
    page = visit.link_if_there("analytics_requests_detail", visit.project.pk, one.request_id)
    return Link(share(one.score), page)


def _links(visit: Visit, evaluator: RolloutEvaluator) -> Iterator[Link]:
    if evaluator.is_outcome:
        return
    yield Link("The evaluator", visit.link_if_there("evaluator", evaluator.evaluator_id))
    yield Link("Its online evaluations", visit.link_if_there("online_evaluations"))
    if evaluator.calibration != RULE and visit.may(Right.EDIT):
        more = visit.link_if_there("review_labels", evaluator_id=evaluator.evaluator_id, count=MORE_LABELS)
        yield Link(f"Label {MORE_LABELS} more", more)
