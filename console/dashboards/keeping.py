"""The link that keeps a plot or table of another page as a chart. It opens the form of a new chart, with all values in
one parameter of the address."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from analytics.figures.registry import FIGURES
from analytics.models import ChartKind
from core.ui.pages import Visit

KEEP = "keep"
_NAMES = ("title", "kind", "figures", "group_by", "tag", "filters")


def keep_address(
    visit: Visit,
    title: str,
    kind: ChartKind,
    figures: Sequence[str],
    *,
    group_by: str = "",
    filters: Mapping[str, Any] | None = None,
) -> str:
    """Returns an empty text if the person may not open the form."""
    values = {"title": title, "kind": kind.value, "figures": list(figures), "group_by": group_by, "filters": filters}
    kept = json.dumps({name: value for name, value in values.items() if value}, separators=(",", ":"), default=str)
    return visit.link_if_there("chart_form", **{KEEP: kept})


def keep_figure(visit: Visit, figure: str) -> str:
    return keep_address(visit, FIGURES[figure].label, ChartKind.NUMBER, [figure])


def keep_providers(visit: Visit) -> str:
    figures = ["request_count", "error_rate", "p50_latency_ms", "p95_latency_ms"]
    return keep_address(visit, "Providers", ChartKind.TABLE, figures, group_by="provider")


def kept_values(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError:
        return {}
    return {name: given[name] for name in _NAMES if name in given} if isinstance(given, dict) else {}
