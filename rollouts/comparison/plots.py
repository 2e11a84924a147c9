from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.ui.plots import Mark, Plot, Series, Threshold, Unit
from rollouts.comparison.minute_sums import ArmSums, Sums
from rollouts.evaluation import Metric
from rollouts.evaluation.counts import events_of
from rollouts.evaluation.explanation import LABELS
from rollouts.evaluation.policy import RATES
from rollouts.models import RolloutStage

Value = float | Decimal | None


@dataclass(frozen=True, slots=True)
class _Figure:
    unit: Unit
    value: Callable[[ArmSums, float], Value]


def _ratio(total: float | Decimal, count: int) -> Value:
    return total / count if count else None


def _rate(metric: Metric) -> _Figure:
    return _Figure(Unit.SHARE, lambda sums, _: _ratio(*events_of(sums, metric)))


_FIGURES: Mapping[Metric, _Figure] = {
    **{metric: _rate(metric) for metric in RATES},
    Metric.LATENCY_AVERAGE: _Figure(Unit.MILLISECONDS, lambda sums, _: _ratio(sums.latency_ms, sums.timed)),
    Metric.COST: _Figure(Unit.MONEY, lambda sums, _: _ratio(sums.cost_usd, sums.priced)),
}
"""The figures of the metrics that the minutes know: of the slowest answers they have no value over time."""
_TRAFFIC = _Figure(Unit.COUNT, lambda sums, minutes: round(sums.requests / minutes, 2))


def metric_plots(
    sums: Sums, stages: Sequence[RolloutStage], metrics: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Plot]:
    found = (
        (metric.value, _plot(f"{LABELS[metric]}, over time", figure, sums, stages, metrics.get(metric.value)))
        for metric, figure in _FIGURES.items()
    )
    return {name: plot for name, plot in found if plot is not None}


def traffic_plot(sums: Sums, stages: Sequence[RolloutStage]) -> Plot | None:
    return _plot("Requests a minute", _TRAFFIC, sums, stages, None)


def _plot(
    title: str, figure: _Figure, sums: Sums, stages: Sequence[RolloutStage], metric: Mapping[str, Any] | None
) -> Plot | None:
    target, baseline = (_values(figure, arm, sums) for arm in (sums.target, sums.baseline))
    if all(value is None for value in (*target, *baseline)):
        return None
    return Plot(
        title=title,
        times=sums.times,
        step=sums.step,
        series=[Series("target", target), Series("baseline", baseline)],
        unit=figure.unit,
        thresholds=_limits(metric),
        marks=[Mark(f"stage {one.number}, {one.weight} %", one.entered_at) for one in stages if one.entered_at],
    )


def _values(figure: _Figure, arm: Sequence[ArmSums | None], sums: Sums) -> list[Value]:
    minutes = sums.step.total_seconds() / 60
    return [None if one is None else figure.value(one, minutes) for one in arm]


def _limits(metric: Mapping[str, Any] | None) -> list[Threshold]:
    if metric is None or metric["baseline"] is None or metric["failing_difference"] is None:
        return []
    return [Threshold("may fail from here", metric["baseline"] + metric["failing_difference"])]
