"""The panel of a rollout's evaluators: what was due and judged, how both versions score, and the worst pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from analytics.evaluators.calibration.states import State as Calibrated
from analytics.online_evaluations.ended import TaskCounts, counts_by_arm
from analytics.online_evaluations.worst_pairs import Pair, ScoredAnswer, worst_pairs
from analytics.queries.variants import BASELINE, TARGET
from console.rollouts.links import Link
from core.roles import Right
from core.ui.formats import number, share
from core.ui.pages import Visit
from core.ui.plots import Interval
from rollouts.comparison.metrics import latest_figures
from rollouts.comparison.tables import change, e_value, mark_of
from rollouts.models import Rollout
from rollouts.quality.entries import RULE, RolloutEvaluator, evaluators_of
from rollouts.selectors import get_rollout

MORE_LABELS = 20

_UNIT = "score"
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
    target: str
    baseline: str
    sentence: str
    calibration: str
    tasks: Sequence[tuple[str, str]]
    interval: Interval | None
    numbers: Sequence[tuple[str, str]]
    pairs: Sequence[_ShownPair]
    links: Sequence[Link]

    @property
    def is_worse(self) -> bool:
        return self.kind == "bad"


@dataclass(frozen=True, slots=True)
class _ShownPair:
    target: Link
    baseline: Link
    difference: str


def scores(visit: Visit, rollout_id: UUID) -> Mapping[str, Any]:
    row = get_rollout(visit.project.pk, rollout_id)
    evaluators = evaluators_of(row)
    judged = {one["title"]: one for one in latest_figures(row).get("quality", {}).get("evaluators", ())}
    counts = counts_by_arm(row.pk, [one.version_id for one in evaluators])
    return {
        "asked": len(row.quality),
        "rows": [_row(visit, row, one, judged.get(one.title, {}), counts) for one in evaluators],
    }


def counted(counts: TaskCounts) -> str:
    """Returns what has become of the tasks of an arm, as "84 of 96 due judged, 12 missing: judge failed 9, no text
    3"."""
    if not counts.due:
        return "nothing due yet"
    missing = sum(counts.missing.values())
    waiting = counts.due - counts.done - missing
    text = f"{number(counts.done)} of {number(counts.due)} due judged"
    if missing:
        most_first = sorted(counts.missing.items(), key=lambda item: (-item[1], item[0]))
        reasons = ", ".join(f"{reason.replace('_', ' ')} {number(count)}" for reason, count in most_first)
        text += f", {number(missing)} missing: {reasons}"
    return f"{text}; {number(waiting)} to be judged" if waiting else text


def _row(
    visit: Visit,
    row: Rollout,
    evaluator: RolloutEvaluator,
    one: Mapping[str, Any],
    counts: Mapping[tuple[UUID, str], TaskCounts],
) -> _Row:
    mark, kind = mark_of(one["status"]) if one else ("not judged", "neutral")
    tasks = [(arm, counted(counts.get((evaluator.version_id, arm), TaskCounts()))) for arm in (TARGET, BASELINE)]
    return _Row(
        evaluator=evaluator,
        mark=mark,
        kind=kind,
        target=share(one["target"]) if one and one["target"] is not None else "",
        baseline=share(one["baseline"]) if one and one["baseline"] is not None else "",
        sentence=one["explanation"] if one else "No score has been compared yet.",
        calibration=_CALIBRATIONS[evaluator.calibration],
        tasks=tasks,
        interval=_interval(evaluator, one) if one else None,
        numbers=[(label, value) for label, value in _numbers(evaluator, one) if value] if one else [],
        pairs=[_pair(visit, pair) for pair in worst_pairs(row.pk, evaluator.version_id)],
        links=[link for link in _links(visit, evaluator) if link.href],
    )


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
    low, high = (change(_UNIT, one["interval"][end]) for end in ("low", "high"))
    between = f" (95 % interval: {low or '?'} to {high or '?'})" if low or high else ""
    yield "Difference", f"{change(_UNIT, one['difference'])}{between}"
    yield "Pairs", f"{number(one['pairs'])}, {number(one['complete_pairs'])} with both scores"
    yield "Margin", change(_UNIT, -evaluator.margin)
    yield "If it fails", evaluator.action.value.replace("_", " ")
    yield "Must pass", "from 50 % on" if evaluator.required else "no"
    yield "E that it is worse", e_value(one["evidence"])
    yield "E that it is not worse", f"{e_value(one['safety'])}, passes from {e_value(one['safety_threshold'])}"
    labelled = [one["tasks"][arm] for arm in (TARGET, BASELINE)]
    if any(arm["labels_due"] for arm in labelled):
        of_both = (sum(arm[name] for arm in labelled) for name in ("labelled", "labels_due"))
        yield "Labels", " of ".join(number(count) for count in of_both)


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
