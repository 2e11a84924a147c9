"""Plots of the two arms of a rollout over time, one for each figure that its minutes know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.ui.plots import Mark, Plot, Series, Threshold, Unit
from rollouts.comparison.minute_sums import ArmSums, Sums
from rollouts.models import RolloutStage

Value = float | Decimal | None


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure that is plotted. `metric` is the metric that judges it, whose limit is drawn."""

    title: str
    unit: Unit
    value: Callable[[ArmSums, float], Value]
    metric: str = ""


def _ratio(total: float | Decimal, count: int) -> Value:
    return total / count if count else None


_FIGURES = (
    _Figure("Requests a minute", Unit.COUNT, lambda sums, minutes: round(sums.requests / minutes, 2)),
    _Figure("Unanswered", Unit.SHARE, lambda sums, _: _ratio(sums.unanswered, sums.requests), "unanswered"),
    _Figure("Error rate", Unit.SHARE, lambda sums, _: _ratio(sums.errors, sums.judged), "error_rate"),
    _Figure(
        "Average latency", Unit.MILLISECONDS, lambda sums, _: _ratio(sums.latency_ms, sums.answered), "latency_average"
    ),
    _Figure("Cost of a request", Unit.MONEY, lambda sums, _: _ratio(sums.cost_usd, sums.priced), "cost_per_request"),
)


def plots(sums: Sums, stages: Sequence[RolloutStage], metrics: Mapping[str, Mapping[str, Any]]) -> list[Plot]:
    """Returns the plots, with a mark where each stage begins. `metrics` are the judged ones of the latest verdict;
    their limit is the baseline's figure plus the difference below which the metric does not fail."""
    marks = [Mark(f"stage {one.number}, {one.weight} %", one.entered_at) for one in stages if one.entered_at]
    found = []
    for figure in _FIGURES:
        target, baseline = (_values(figure, arm, sums) for arm in (sums.target, sums.baseline))
        if all(value is None for value in (*target, *baseline)):
            continue
        found.append(
            Plot(
                title=figure.title,
                times=sums.times,
                step=sums.step,
                series=[Series("target", target), Series("baseline", baseline)],
                unit=figure.unit,
                thresholds=_limits(metrics.get(figure.metric)),
                marks=marks,
            )
        )
    return found


def _values(figure: _Figure, arm: Sequence[ArmSums | None], sums: Sums) -> list[Value]:
    minutes = sums.step.total_seconds() / 60
    return [None if one is None else figure.value(one, minutes) for one in arm]


def _limits(metric: Mapping[str, Any] | None) -> list[Threshold]:
    if metric is None or metric["baseline"] is None or metric["failing_difference"] is None:
        return []
    return [Threshold("may fail from here", metric["baseline"] + metric["failing_difference"])]
