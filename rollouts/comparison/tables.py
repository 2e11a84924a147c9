from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from analytics.queries.variants import BASELINE, TARGET, ArmTotals
from core.ui import formats
from core.ui.plots import Interval
from rollouts.evaluation import Metric, Status
from rollouts.evaluation.explanation import LABELS
from rollouts.evaluation.words import left_out, odds, reason

ARMS = (TARGET, BASELINE)
UNKNOWN = "?"
UNCOMPARED = "uncompared"

_MIN_SHOWN = math.log(0.01)
# Points of a percentage are the difference of two shares.
_POINTS = 100


@dataclass(frozen=True, slots=True)
class MetricRow:
    name: str
    label: str
    mark: str
    kind: str
    target: str
    baseline: str
    sentence: str
    decides: bool
    interval: Interval | None
    numbers: Sequence[tuple[str, str]]

    @property
    def is_worse(self) -> bool:
        return self.kind == "bad"


_MARKS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        Status.PASSING: ("fine", "good"),
        Status.FAILING: ("worse", "bad"),
        Status.INCONCLUSIVE: ("not certain", "neutral"),
    }
)


def mark_of(status: str) -> tuple[str, str]:
    return _MARKS[status]


def metric_rows(shown: Mapping[str, Any]) -> list[MetricRow]:
    return [_metric_row(metric, shown[metric.value]) for metric in LABELS if metric.value in shown]


def _metric_row(metric: Metric, one: Mapping[str, Any]) -> MetricRow:
    name = metric.value
    unjudged = ("shown only" if metric is Metric.STOPPED else "not judged", "neutral")
    mark = mark_of(one["status"]) if one["judged"] else unjudged
    limit = one["failing_difference"]
    return row_of(name, LABELS[metric], mark, one, _numbers(name, one), limit=limit, limit_name="may fail from here")


def row_of(
    name: str,
    label: str,
    mark: tuple[str, str],
    one: Mapping[str, Any],
    numbers: Iterable[tuple[str, str]],
    **limit: Any,
) -> MetricRow:
    low, value, high = one["interval"]["low"], one["difference"], one["interval"]["high"]
    title, points = f"{label}: difference of target and baseline", partial(change, name)
    is_known = None not in (low, value, high)
    return MetricRow(
        name=name,
        label=label,
        mark=mark[0],
        kind=mark[1],
        target=figure(name, one["target"]),
        baseline=figure(name, one["baseline"]),
        sentence=one["explanation"],
        decides=one["decides"],
        interval=Interval(title, low=low, value=value, high=high, label=points, **limit) if is_known else None,
        numbers=[(label, value) for label, value in numbers if value],
    )


def _numbers(name: str, one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Difference", difference(name, one)
    yield "May fail from", change(name, one["failing_difference"])
    if one["judged"]:
        yield "If it fails", one["action"].replace("_", " ")
        yield "E that it is worse", f"{e_value(one['evidence'])}, decides from {e_value(one['evidence_threshold'])}"
        yield "E that it is harmless", f"{e_value(one['safety'])}, decides from {e_value(one['safety_threshold'])}"
    if one["user_evidence"] is not None:
        design = one.get("design_effect")
        yield "E by users", e_value(one["user_evidence"])
        yield "Design effect", UNKNOWN if design is None else f"{design:.3g}"


def e_value(evidence: float | None) -> str:
    if evidence is None:
        return UNKNOWN
    return "< 0.01" if evidence < _MIN_SHOWN else odds(evidence)


def total_rows(totals: Mapping[str, ArmTotals]) -> list[tuple[str, list[Any]]]:
    arms = [totals[arm] for arm in ARMS]
    compared = [arm.compared for arm in arms]
    answered = [arm.compared - arm.unanswered for arm in arms]
    codes = sorted({code for arm in arms for code in arm.reasons})
    return [
        ("requests allocated", [arm.requests for arm in arms]),
        ("answered", [_share(one, of) for one, of in zip(answered, compared, strict=True)]),
        ("unanswered", [_share(arm.unanswered, of) for arm, of in zip(arms, compared, strict=True)]),
        *((f"unanswered: {reason(code)}", [arm.reasons.get(code, 0) for arm in arms]) for code in codes),
        ("errors", [_share(arm.errors, arm.counted) for arm in arms]),
    ]  # fmt: skip


def left_out_rows(
    totals: Mapping[str, ArmTotals], counts: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, list[str]]]:
    arms = [{**totals[arm].left_out, UNCOMPARED: counts[arm].get(UNCOMPARED, 0)} for arm in ARMS]
    codes = sorted({code for arm in arms for code, count in arm.items() if count})
    return [(left_out(code), [formats.number(arm.get(code, 0)) for arm in arms]) for code in codes]


def difference(metric: str, one: Mapping[str, Any]) -> str:
    low, high = (change(metric, one["interval"][end]) for end in ("low", "high"))
    between = f" (95 % interval: {low or UNKNOWN} to {high or UNKNOWN})" if low or high else ""
    return f"{change(metric, one['difference'])}{between}"


def figure(metric: str, value: float | None) -> str:
    if value is None:
        return ""
    if metric.startswith("latency"):
        return formats.duration(value)
    return formats.money(value) if metric.startswith("cost") else formats.share(value)


def change(metric: str, value: float | None) -> str:
    if value is None:
        return ""
    sign = formats.MINUS if value < 0 else "+"
    if metric.startswith(("latency", "cost")):
        return f"{sign}{figure(metric, abs(value))}"
    return f"{sign}{abs(value) * _POINTS:.2f} points"


def _share(number: int, of: int) -> str:
    return f"{formats.number(number)} ({formats.share(number / of)})" if of else formats.number(number)
