from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from analytics.figures.query import FigureQuery, value_of
from analytics.figures.registry import FIGURES, FigureSource
from analytics.parameters.ranges import TimeRange
from core.errors import ValidationError
from gateway.figure_alerts.subjects import missing_subject
from gateway.figure_alerts.words import CHANGES
from gateway.tables.figure_alert import FigureAlert

_State, _Condition = FigureAlert.State, FigureAlert.Condition

# A window ends a little before now, since the records of the last seconds are still on their way to the request log.
SETTLING = timedelta(seconds=10)
_WEEK = timedelta(days=7)
_COUNTS = {FigureSource.REQUESTS: "request_count", FigureSource.SCORES: "score_count"}


@dataclass(frozen=True, slots=True)
class Look:
    """`problem` says why there is no figure; `count` is the number of requests or scores that were measured."""

    state: str
    problem: str = ""
    value: float | None = None
    value_before: float | None = None
    count: int | None = None


def look_at(alert: FigureAlert, now: datetime) -> Look:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    try:
        query = FigureQuery.from_json(alert.query)
    except ValidationError as error:
        problems = [problem for found in (error.details or {}).values() for problem in found] or [error.message]
        return Look(_State.BROKEN, f"The figure cannot be measured any more: {problems[0]}")
    missing = missing_subject(alert.project_id, query.filters)
    if missing is not None:
        return Look(_State.BROKEN, f"The {missing[1]} of the figure is not there any more: choose another figure.")
    end = now - SETTLING
    window = TimeRange(end - timedelta(minutes=alert.window_minutes), end)
    count, value = _measured(alert, query, window)
    if value is None:
        return Look(_State.NO_DATA, _too_few(alert, count), count=count)
    if alert.condition not in CHANGES:
        return Look(_judged(alert, value), value=value, count=count)
    count_before, before = _measured(alert, query, TimeRange(window.start - _WEEK, window.end - _WEEK))
    if not before:
        return Look(_State.NO_DATA, _nothing_before(alert, count_before), value, before, count)
    change = (value / before - 1) * 100
    return Look(_judged(alert, change), value=value, value_before=before, count=count)


def _measured(alert: FigureAlert, query: FigureQuery, window: TimeRange) -> tuple[int, float | None]:
    count = count_of(alert.project_id, query, window)
    return count, value_of(alert.project_id, query, window) if count >= alert.min_requests else None


def count_of(project_id: UUID, query: FigureQuery, window: TimeRange) -> int:
    counted = replace(query, figure=_COUNTS[FIGURES[query.figure].source])
    return int(value_of(project_id, counted, window) or 0)


def _too_few(alert: FigureAlert, count: int) -> str:
    if count < alert.min_requests:
        return f"There were {count:,} in the window, and at least {alert.min_requests:,} are needed."
    return "There was nothing to measure in the window."


def _nothing_before(alert: FigureAlert, count: int) -> str:
    if count < alert.min_requests:
        return f"There were {count:,} at the same time last week, and at least {alert.min_requests:,} are needed."
    return "At the same time last week the figure was 0 or not there, so that it has no change in percent."


def _judged(alert: FigureAlert, value: float) -> str:
    match alert.condition:
        case _Condition.ABOVE:
            fires = value > alert.threshold
        case _Condition.BELOW:
            fires = value < alert.threshold
        case _Condition.RISES:
            fires = value >= alert.threshold
        case _:
            fires = value <= -alert.threshold
    return _State.FIRING if fires else _State.OK
