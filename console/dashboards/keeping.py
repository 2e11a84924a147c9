"""The link by which a plot or a table of another page is kept as a chart: it opens the form of a new chart with these
values, in the address as one parameter."""

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
    """Returns the address of the form; empty for somebody who may not open it."""
    values = {"title": title, "kind": kind.value, "figures": list(figures), "group_by": group_by, "filters": filters}
    kept = json.dumps({name: value for name, value in values.items() if value}, separators=(",", ":"), default=str)
    return visit.link_if_there("chart_form", **{KEEP: kept})


def keep_figure(visit: Visit, figure: str) -> str:
    """Returns the address that keeps a figure of a tile."""
    return keep_address(visit, FIGURES[figure].label, ChartKind.NUMBER, [figure])


def keep_providers(visit: Visit) -> str:
    """Returns the address that keeps a table of the providers."""
    figures = ["request_count", "error_rate", "p50_latency_ms", "p95_latency_ms"]
    return keep_address(visit, "Providers", ChartKind.TABLE, figures, group_by="provider")


def kept_values(text: str) -> dict[str, Any]:
    """Returns the values of such an address, without what the form has no field for."""
    try:
        given = json.loads(text)
    except ValueError:
        return {}
    return {name: given[name] for name in _NAMES if name in given} if isinstance(given, dict) else {}
