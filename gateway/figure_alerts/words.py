from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from analytics.figures.registry import FIGURES, FigureUnit
from core.ui.formats import duration, money, number, share
from gateway.figure_alerts.subjects import filter_words
from gateway.tables.figure_alert import FigureAlert

_Condition = FigureAlert.Condition
CHANGES = frozenset({_Condition.RISES, _Condition.FALLS})
_NOT_CHANGES = {_Condition.ABOVE: "above", _Condition.BELOW: "below"}
_DAY, _HOUR = 24 * 60, 60


def figure_text(project_id: UUID, query: Mapping[str, Any]) -> str:
    name = str(query.get("figure", ""))
    label = FIGURES[name].label if name in FIGURES else name
    parts = filter_words(project_id, query.get("filters") or {})
    return f"{label} ({', '.join(parts)})" if parts else label


def value_text(query: Mapping[str, Any], value: float | None) -> str:
    figure = FIGURES.get(str(query.get("figure", "")))
    match figure.unit if figure else None:
        case FigureUnit.USD:
            return money(value)
        case FigureUnit.MILLISECONDS:
            return duration(value)
        case FigureUnit.SHARE:
            return share(value)
        case _:
            return number(value)


def condition_text(alert: FigureAlert) -> str:
    window = window_text(alert.window_minutes)
    if alert.condition in CHANGES:
        side = "above" if alert.condition == _Condition.RISES else "below"
        return f"{number(alert.threshold)} % or more {side} the same time last week, over {window}"
    return f"{_NOT_CHANGES[_Condition(alert.condition)]} {value_text(alert.query, alert.threshold)} over {window}"


def window_text(minutes: int) -> str:
    for length, word in ((_DAY, "day"), (_HOUR, "hour")):
        if minutes % length == 0:
            count = minutes // length
            return f"{count} {word}" if count == 1 else f"{count} {word}s"
    return f"{minutes} minutes"
