"""The figures of a verdict as the cells of tables, for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollouts.evaluation.words import odds

ARMS = ("target", "baseline")


@dataclass(frozen=True, slots=True)
class MetricRow:
    """`evidence` and `safety` beside what each of them has to reach; `decides`: the verdict rests on this metric."""

    name: str
    status: str
    action: str
    target: str
    baseline: str
    interval: str
    evidence: str
    safety: str
    explanation: str
    decides: bool


def metric_rows(shown: Mapping[str, Any]) -> list[MetricRow]:
    """Of what `comparisons.judged_metrics` gives."""
    return [_metric_row(name, one) for name, one in shown.items()]


def _metric_row(name: str, one: Mapping[str, Any]) -> MetricRow:
    interval = one["interval"]
    low, high = (figure(name, interval[end]) for end in ("low", "high"))
    return MetricRow(
        name=name.replace("_", " "),
        status=one["status"] if one["judged"] else "not judged",
        action=one["action"].replace("_", " "),
        target=figure(name, one["target"]),
        baseline=figure(name, one["baseline"]),
        interval=f"{low} to {high}" if low or high else "",
        evidence=f"{odds(one['evidence'])} of {odds(one['fails_at'])}" if one["judged"] else "",
        safety=f"{odds(one['safety'])} of {odds(one['passes_at'])}" if one["judged"] else "",
        explanation=one["explanation"],
        decides=one["decides"],
    )


def count_rows(counts: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """A name and the figure of target and baseline, for what the formula counts."""
    arms = [counts[arm] for arm in ARMS]
    if "unanswered" not in arms[0]:
        return [("requests whose outcome is judged", _column(arms, "requests")), ("errors", _column(arms, "errors"))]
    reasons = sorted({reason for arm in arms for reason in arm["reasons"]})
    return [
        ("requests allocated", _column(arms, "requests")),
        ("answered", [arm["requests"] - arm["unanswered"] for arm in arms]),
        ("unanswered", _column(arms, "unanswered")),
        *((f"unanswered: {reason.replace('_', ' ')}", [arm["reasons"].get(reason, 0) for arm in arms])
          for reason in reasons),
        ("requests whose outcome is judged", _column(arms, "judged")),
        ("errors", _column(arms, "errors")),
    ]  # fmt: skip


def figure(metric: str, value: float | None) -> str:
    """Of a metric or a difference of it; nothing where it is not known."""
    if value is None:
        return ""
    if metric.startswith("latency"):
        return f"{value:.0f} ms"
    if metric.startswith("cost"):
        return f"{'-' if value < 0 else ''}${abs(value):.6f}"
    return f"{value * 100:.2f} %"


def _column(arms: list[Mapping[str, Any]], name: str) -> list[Any]:
    return [arm[name] for arm in arms]
