"""The link from a figure of any page to the form of a new alert. All filters share one parameter of the address, since
a filter may have several values."""

from __future__ import annotations

import json

from analytics.figures.filters import Filters
from analytics.figures.registry import FIGURES
from core.ui.pages import Visit


def alert_address(visit: Visit, figure: str, *, title: str = "", filters: Filters | None = None) -> str:
    """Returns an empty text if the person may not open the form, or the figure no longer exists."""
    if figure not in FIGURES:
        return ""
    given = json.dumps(filters, separators=(",", ":")) if filters else ""
    return visit.link_if_there("alert_form", figure=figure, title=title, filters=given)


def filters_of_address(text: str) -> Filters:
    try:
        given = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(given, dict):
        return {}
    return {name: value for name, value in given.items() if isinstance(value, str) or _is_texts(value)}


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
