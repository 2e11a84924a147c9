from __future__ import annotations

from collections.abc import Sequence

from analytics.models import ChartKind
from analytics.parameters.ranges import TimeRange
from analytics.presenters import metrics
from console.dashboards.keeping import keep_address
from core.ui.navigation import address_of
from core.ui.pages import Visit
from core.ui.plots import Plot, Series, Unit
from core.wire.pagination import MAXIMUM_LIMIT, Page

_ALL = Page(limit=MAXIMUM_LIMIT, offset=0)


def home_plots(visit: Visit, time_range: TimeRange) -> Sequence[Plot]:
    """Plots requests, latency, cost and time to first token. Raises the errors of the request log."""
    listing = metrics.usage(visit.project.pk, time_range, _ALL)
    rows = list(reversed(listing.results))
    times = [row["start"] for row in rows]
    interval = listing.more["interval"]
    brush = address_of("analytics_requests_changelist", query={"project": str(visit.project.pk)})

    def keep(title: str, kind: ChartKind, *figures: str) -> str:
        return keep_address(visit, title, kind, figures)

    def series(name: str, field: str) -> Series:
        return Series(name, [row[field] for row in rows])

    answered = Series("answered", [row["request_count"] - row["error_count"] for row in rows], kind="neutral")
    errors = Series("errors", [row["error_count"] for row in rows], kind="bad")
    return [
        Plot(
            f"Requests and errors per {interval}",
            times,
            [answered, errors],
            kind="stacked",
            brush=brush,
            keep=keep("Requests and errors", ChartKind.LINE, "request_count", "error_count"),
        ),
        Plot(
            "Latency",
            times,
            [series("half are faster (p50)", "p50_latency_ms"), series("95 % are faster (p95)", "p95_latency_ms")],
            unit=Unit.MILLISECONDS,
            brush=brush,
            keep=keep("Latency", ChartKind.LINE, "p50_latency_ms", "p95_latency_ms"),
        ),
        Plot(
            f"Cost per {interval}",
            times,
            [series("cost", "total_cost_usd")],
            unit=Unit.MONEY,
            kind="bars",
            brush=brush,
            keep=keep("Cost", ChartKind.BARS, "total_cost_usd"),
        ),
        Plot(
            "Time to the first token",
            times,
            [series("half are faster (p50)", "p50_ttft_ms"), series("95 % are faster (p95)", "p95_ttft_ms")],
            unit=Unit.MILLISECONDS,
            brush=brush,
            keep=keep("Time to the first token", ChartKind.LINE, "p50_ttft_ms", "p95_ttft_ms"),
            empty="No streamed requests in this range.",
        ),
    ]
