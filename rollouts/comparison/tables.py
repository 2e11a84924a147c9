"""The figures of a verdict as the cells of tables, for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    """A metric's row. `mark` says how it stands, in the colour of `kind`; `decides` means that the verdict rests on
    this metric, and `interval` has its difference with the interval and the limit, where they are known. `numbers` are
    the figures behind the sentence, by name."""

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
    """Returns how something stands, and the colour of it."""
    return _MARKS[status]


def metric_rows(shown: Mapping[str, Any]) -> list[MetricRow]:
    """Returns the rows of the metrics that `wire.judged_metrics` returns, in the order in which people read them."""
    return [_metric_row(metric, shown[metric.value]) for metric in LABELS if metric.value in shown]


def _metric_row(metric: Metric, one: Mapping[str, Any]) -> MetricRow:
    name = metric.value
    unjudged = ("shown only" if metric is Metric.STOPPED else "not judged", "neutral")
    mark, kind = mark_of(one["status"]) if one["judged"] else unjudged
    return MetricRow(
        name=name,
        label=LABELS[metric],
        mark=mark,
        kind=kind,
        target=figure(name, one["target"]),
        baseline=figure(name, one["baseline"]),
        sentence=one["explanation"],
        decides=one["decides"],
        interval=_plot(name, one),
        numbers=[(label, value) for label, value in _numbers(name, one) if value],
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


def _plot(name: str, one: Mapping[str, Any]) -> Interval | None:
    low, high = one["interval"]["low"], one["interval"]["high"]
    if one["difference"] is None or low is None or high is None:
        return None
    return Interval(
        title=f"{LABELS[Metric(name)]}: difference of target and baseline",
        low=low,
        value=one["difference"],
        high=high,
        limit=one["failing_difference"],
        limit_name="may fail from here",
        label=lambda value: change(name, value),
    )


def e_value(evidence: float | None) -> str:
    """Returns an e-value as people read it: of very small ones the size does not matter."""
    if evidence is None:
        return UNKNOWN
    return "< 0.01" if evidence < _MIN_SHOWN else odds(evidence)


def total_rows(totals: Mapping[str, ArmTotals]) -> list[tuple[str, list[Any]]]:
    """Returns a name and the figures of target and baseline for all requests up to now."""
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
    """Returns by reason how many requests of target and baseline the comparison leaves out; what is in neither arm has
    no row. `counts` are those of a verdict, which know the questions that were in a cache."""
    arms = [{**totals[arm].left_out, UNCOMPARED: counts[arm].get(UNCOMPARED, 0)} for arm in ARMS]
    codes = sorted({code for arm in arms for code, count in arm.items() if count})
    return [(left_out(code), [formats.number(arm.get(code, 0)) for arm in arms]) for code in codes]


def difference(metric: str, one: Mapping[str, Any]) -> str:
    """Returns the text of the difference of both arms with its interval, as far as they are known."""
    low, high = (change(metric, one["interval"][end]) for end in ("low", "high"))
    between = f" (95 % interval: {low or UNKNOWN} to {high or UNKNOWN})" if low or high else ""
    return f"{change(metric, one['difference'])}{between}"


def figure(metric: str, value: float | None) -> str:
    """Returns the text of a metric's value; empty where it is not known."""
    if value is None:
        return ""
    if metric.startswith("latency"):
        return formats.duration(value)
    return formats.money(value) if metric.startswith("cost") else formats.share(value)


def change(metric: str, value: float | None) -> str:
    """Returns the text of a difference of two values of a metric, with its sign; empty where it is not known. That of
    two shares is in points of a percentage."""
    if value is None:
        return ""
    sign = formats.MINUS if value < 0 else "+"
    if metric.startswith(("latency", "cost")):
        return f"{sign}{figure(metric, abs(value))}"
    return f"{sign}{abs(value) * _POINTS:.2f} points"


def _share(number: int, of: int) -> str:
    return f"{formats.number(number)} ({formats.share(number / of)})" if of else formats.number(number)
