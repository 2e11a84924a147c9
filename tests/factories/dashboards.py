from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.models import Chart, ChartKind, Dashboard
from core.models import Project

ONE_OF_EACH_KIND: Sequence[Mapping[str, Any]] = (
    {"title": "Requests and errors", "kind": ChartKind.LINE, "figures": ["request_count", "error_count"]},
    {"title": "Cost by model", "kind": ChartKind.BARS, "figures": ["total_cost_usd"], "group_by": "model"},
    {"title": "Error codes", "kind": ChartKind.RANKING, "figures": ["error_count"], "group_by": "error_code"},
    {"title": "Slow half", "kind": ChartKind.NUMBER, "figures": ["p95_latency_ms"]},
    {"title": "Models", "kind": ChartKind.TABLE, "figures": ["request_count", "error_rate"], "group_by": "model"},
    {"title": "Hours", "kind": ChartKind.TABLE, "figures": ["request_count", "p95_latency_ms"], "is_wide": True},
)


def make_dashboard(
    project: Project,
    name: str = "Everything",
    charts: Sequence[Mapping[str, Any]] = ONE_OF_EACH_KIND,
    *,
    owner: str = "user:somebody",
    is_shared: bool = True,
) -> Dashboard:
    row, _ = Dashboard.objects.get_or_create(project=project, owner=owner, name=name, defaults={"is_shared": is_shared})
    if not row.charts.exists():
        Chart.objects.bulk_create(
            Chart(dashboard=row, position=position, **chart) for position, chart in enumerate(charts)
        )
    return row
