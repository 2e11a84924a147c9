"""The figures of a verdict as the cells of tables, for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.queries.variants import BASELINE, TARGET, ArmTotals
from core.ui import formats
from core.ui.plots import Interval
from rollouts.evaluation.words import odds

ARMS = (TARGET, BASELINE)
UNKNOWN = "?"

_MIN_SHOWN = math.log(0.01)
# Points of a percentage are the difference of two shares.
_POINTS = 100


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric's row. `evidence` and `safety` are shown beside their thresholds; `decides` means that the verdict rests
    on this metric, and `plot` has its difference with the interval and the limit, where they are known."""

    name: str
    status: str
    action: str
    target: str
    baseline: str
    difference: str
    interval: str
    limit: str
    plot: Interval | None
    evidence: str
    safety: str
    explanation: str
    decides: bool


def metric_rows(shown: Mapping[str, Any]) -> list[MetricRow]:
    """Returns the rows of the metrics that `comparisons.judged_metrics` returns."""
    return [_metric_row(name, one) for name, one in shown.items()]


def _metric_row(name: str, one: Mapping[str, Any]) -> MetricRow:
    interval = one["interval"]
    low, high = (change(name, interval[end]) for end in ("low", "high"))
    return MetricRow(
        name=name.replace("_", " "),
        status=one["status"] if one["judged"] else "not judged",
        action=one["action"].replace("_", " "),
        target=figure(name, one["target"]),
        baseline=figure(name, one["baseline"]),
        difference=change(name, one["difference"]),
        interval=f"{low or UNKNOWN} to {high or UNKNOWN}" if low or high else "",
        limit=change(name, one["failing_difference"]),
        plot=_plot(name, one),
        evidence=_evidence(one) if one["judged"] else "",
        safety=f"{_odds(one['safety'])} of {odds(one['safety_threshold'])}" if one["judged"] else "",
        explanation=one["explanation"],
        decides=one["decides"],
    )


def _plot(name: str, one: Mapping[str, Any]) -> Interval | None:
    low, high = one["interval"]["low"], one["interval"]["high"]
    if one["difference"] is None or low is None or high is None:
        return None
    return Interval(
        title=f"Difference of {name.replace('_', ' ')}, target against baseline",
        low=low,
        value=one["difference"],
        high=high,
        limit=one["failing_difference"],
        limit_name="may fail from here",
        label=lambda value: change(name, value),
    )


def _evidence(one: Mapping[str, Any]) -> str:
    text = f"{_odds(one['evidence'])} of {odds(one['evidence_threshold'])}"
    return text if one["user_evidence"] is None else f"{text}; by users {_odds(one['user_evidence'])}"


def _odds(evidence: float) -> str:
    """Returns an e-value as people read it: of very small ones the size does not matter."""
    return "< 0.01" if evidence < _MIN_SHOWN else odds(evidence)


def total_rows(totals: Mapping[str, ArmTotals]) -> list[tuple[str, list[Any]]]:
    """Returns a name and the figures of target and baseline for all requests up to now."""
    arms = [totals[arm] for arm in ARMS]
    compared = [arm.compared for arm in arms]
    answered = [arm.compared - arm.unanswered for arm in arms]
    reasons = sorted({reason for arm in arms for reason in arm.reasons})
    left_out = sorted({reason for arm in arms for reason in arm.left_out})
    return [
        ("requests allocated", [arm.requests for arm in arms]),
        *((f"not compared: {reason.replace('_', ' ')}", [arm.left_out.get(reason, 0) for arm in arms])
          for reason in left_out),
        ("answered", [_share(one, of) for one, of in zip(answered, compared, strict=True)]),
        ("unanswered", [_share(arm.unanswered, of) for arm, of in zip(arms, compared, strict=True)]),
        *((f"unanswered: {reason.replace('_', ' ')}", [arm.reasons.get(reason, 0) for arm in arms])
          for reason in reasons),
        ("errors", [_share(arm.errors, arm.counted) for arm in arms]),
    ]  # fmt: skip


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
