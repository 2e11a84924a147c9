"""The panel of a rollout's evaluators: what was due and judged, how both versions score, and the worst pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from analytics.evaluators.calibration.states import State as Calibrated
from analytics.evaluators.definitions import UserFeedback
from analytics.online_evaluations.reasons import reasons_in_words
from analytics.online_evaluations.worst_pairs import Pair, ScoredAnswer, worst_pairs
from analytics.queries.variants import BASELINE, TARGET
from console.rollouts.links import Link
from core.roles import Right
from core.ui.formats import number, share
from core.ui.pages import Visit
from core.ui.plots import Interval
from rollouts.comparison.metrics import latest_figures
from rollouts.comparison.quality import quality_of
from rollouts.comparison.tables import change, difference, e_value, mark_of
from rollouts.models import Rollout
from rollouts.quality.entries import RULE, RolloutEvaluator, evaluators_of
from rollouts.selectors import get_rollout

MORE_LABELS = 20

_UNIT = "score"
_BY_USERS = str(UserFeedback.__struct_config__.tag)
_CALIBRATIONS: Mapping[str, str] = {
    RULE: "a rule, which is right by definition",
    Calibrated.CALIBRATED.value: "a calibrated judge",
    Calibrated.UNCALIBRATED.value: "a judge that is not calibrated: it can hold the rollout, and not pass",
    Calibrated.STALE.value: "a judge whose labels are too old: it can hold the rollout, and not pass",
    Calibrated.DRIFTED.value: "a judge that judges otherwise than it did: it decides nothing",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """An evaluator's row. `tasks` says of both arms what was due, judged and missing."""

    evaluator: RolloutEvaluator
    mark: str
    kind: str
    is_open: bool
    target: str
    baseline: str
    sentence: str
    calibration: str
    tasks: Sequence[tuple[str, str]]
    interval: Interval | None
    numbers: Sequence[tuple[str, str]]
    pairs: Sequence[_ShownPair]
    links: Sequence[Link]


@dataclass(frozen=True, slots=True)
class _ShownPair:
    target: Link
    baseline: Link
    difference: str


def scores(visit: Visit, rollout_id: UUID) -> Mapping[str, Any]:
    row = get_rollout(visit.project.pk, rollout_id)
    found = quality_of(row, latest_figures(row))
    evaluators = {one.title: one for one in evaluators_of(row)}
    return {
        "asked": len(row.quality),
        "rows": [_row(visit, row, evaluators[one["title"]], one) for one in found["evaluators"]] if found else [],
    }


def counted(tasks: Mapping[str, Any]) -> str:
    """Returns what has become of the tasks of an arm, as "84 of 96 due judged, 12 missing: judge failed 9, no text
    3"."""
    if not tasks["due"]:
        return "nothing due yet"
    text = f"{number(tasks['done'])} of {number(tasks['due'])} due judged"
    if tasks["missing"]:
        text += f", {number(tasks['missing'])} missing: {reasons_in_words(tasks['missing_by_reason'])}"
    waiting = tasks["due"] - tasks["done"] - tasks["missing"]
    return f"{text}; {number(waiting)} to be judged" if waiting else text


def _row(visit: Visit, row: Rollout, evaluator: RolloutEvaluator, one: Mapping[str, Any]) -> _Row:
    mark, kind = mark_of(one["status"])
    return _Row(
        evaluator=evaluator,
        mark=mark,
        kind=kind,
        is_open=one["decides"] and kind == "bad",
        target=_mean(one["target"]),
        baseline=_mean(one["baseline"]),
        sentence=one["explanation"],
        calibration=_trust(evaluator),
        tasks=[(arm, counted(one["tasks"][arm])) for arm in (TARGET, BASELINE)],
        interval=_interval(evaluator, one),
        numbers=[(label, value) for label, value in _numbers(evaluator, one) if value],
        pairs=[_pair(visit, pair) for pair in worst_pairs(row.pk, evaluator.version_id)],
        links=[link for link in _links(visit, evaluator) if link.href],
    )


def _trust(evaluator: RolloutEvaluator) -> str:
    """Returns how far the verdict trusts the scores."""
    if evaluator.kind == _BY_USERS:
        return "the ratings of users, as they are"
    if evaluator.label_share is not None and evaluator.calibration != RULE:
        return f"a judge, corrected by labels of people for {share(evaluator.label_share)} of what is due"
    return _CALIBRATIONS[evaluator.calibration]


def _mean(score: float | None) -> str:
    return "" if score is None else share(score)


def _interval(evaluator: RolloutEvaluator, one: Mapping[str, Any]) -> Interval | None:
    low, high = one["interval"]["low"], one["interval"]["high"]
    if one["difference"] is None or low is None or high is None:
        return None
    return Interval(
        title=f"{evaluator.title}: difference of target and baseline",
        low=low,
        value=one["difference"],
        high=high,
        limit=-evaluator.margin,
        limit_name="outside of the margin from here",
        label=lambda value: change(_UNIT, value),
    )


def _numbers(evaluator: RolloutEvaluator, one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Difference", difference(_UNIT, one)
    yield "Pairs", f"{number(one['pairs'])}, {number(one['complete_pairs'])} with both scores"
    yield "Margin", change(_UNIT, -evaluator.margin)
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


def _both(one: Mapping[str, Any], name: str) -> int:
    """Returns a number of both arms' tasks together."""
    return sum(one["tasks"][arm][name] for arm in (TARGET, BASELINE))


def _pair(visit: Visit, pair: Pair) -> _ShownPair:
    return _ShownPair(_answer(visit, pair.target), _answer(visit, pair.baseline), change(_UNIT, pair.difference))


def _answer(visit: Visit, one: ScoredAnswer) -> Link:
    page = visit.link_if_there("analytics_requests_detail", visit.project.pk, one.request_id)
    return Link(share(one.score), page)


def _links(visit: Visit, evaluator: RolloutEvaluator) -> Iterator[Link]:
    yield Link("The evaluator", visit.link_if_there("evaluator", evaluator.evaluator_id))
    yield Link("Its online evaluations", visit.link_if_there("online_evaluations"))
    if evaluator.calibration != RULE and visit.may(Right.EDIT):
        more = visit.link_if_there("review_labels", evaluator_id=evaluator.evaluator_id, count=MORE_LABELS)
        yield Link(f"Label {MORE_LABELS} more", more)
