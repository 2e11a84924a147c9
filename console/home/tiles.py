from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from analytics.parameters.ranges import TimeRange
from analytics.presenters import metrics
from analytics.queries.rollup_ranges import TICK
from analytics.queries.summed import TimedSums
from console.dashboards.alerting import alert_address
from console.dashboards.keeping import keep_figure
from core.ui import formats
from core.ui.pages import Visit
from core.ui.tiles import Tile
from gateway.reports.limit_usage import month_usage
from gateway.reports.problems import ERROR_SHARE

_REQUESTS = "analytics_requests_changelist"
_NEAR = 0.9


def home_tiles(visit: Visit) -> Sequence[Tile]:
    """Returns six figures, each against the period before or the month's budget. Raises the request log's errors."""
    period, before = visit.period, visit.period.before()
    # A range includes both its ends, and no request counts in both.
    ranges = TimeRange(period.start, period.end), TimeRange(before.start, before.end - TICK)
    now, earlier = metrics.totals_compared(visit.project.pk, *ranges)
    return [*_traffic(visit, now, earlier), *_month(visit, month_usage(visit.project.pk))]


def _traffic(visit: Visit, now: TimedSums, before: TimedSums) -> list[Tile]:
    def compared(field: str, shown: Callable[[Any], str]) -> str:
        value, earlier = getattr(now, field), getattr(before, field)
        change = formats.change(value, earlier)
        return f"{change}, before {shown(earlier)}" if change else "none before"

    share = now.error_rate
    return [
        Tile(
            "Requests",
            formats.number(now.request_count),
            compared("request_count", formats.number),
            visit.link(_REQUESTS),
            keep=keep_figure(visit, "request_count"),
            alert=alert_address(visit, "request_count"),
        ),
        Tile(
            "Errors",
            formats.share(share),
            f"{formats.number(now.error_count)} failed, before {formats.share(before.error_rate)}",
            visit.link_if_there("errors") or visit.link(_REQUESTS, outcome="error"),
            "bad" if share >= ERROR_SHARE else "neutral",
            keep=keep_figure(visit, "error_rate"),
            alert=alert_address(visit, "error_rate"),
        ),
        Tile(
            "Latency, p95",
            formats.duration(now.p95_latency_ms),
            compared("p95_latency_ms", formats.duration),
            visit.link(_REQUESTS, sort="-latency_ms"),
            keep=keep_figure(visit, "p95_latency_ms"),
            alert=alert_address(visit, "p95_latency_ms"),
        ),
        Tile(
            "Cost",
            formats.money(now.total_cost_usd),
            compared("total_cost_usd", formats.money),
            visit.link_if_there("usage"),
            keep=keep_figure(visit, "total_cost_usd"),
            alert=alert_address(visit, "total_cost_usd"),
        ),
    ]


def _month(visit: Visit, month: Mapping[str, Any]) -> list[Tile]:
    budget, spent, forecast = month["budget_usd"], month["spent_usd"], month["forecast_usd"]
    href = visit.link_if_there("limits") or visit.link_if_there("usage")
    if budget is None:
        return [
            Tile("This month", formats.money(spent), "no budget is set", href),
            Tile("Forecast of the month", formats.money(forecast), "no budget is set", href),
        ]
    used = spent / budget if budget else 1.0
    spent_kind = "bad" if used >= 1 else "warn" if used >= _NEAR else "neutral"
    is_above = forecast > budget
    return [
        Tile("This month", formats.money(spent), f"{formats.share(used)} of {formats.money(budget)}", href, spent_kind),
        Tile(
            "Forecast of the month",
            formats.money(forecast),
            f"{'above' if is_above else 'within'} the budget of {formats.money(budget)}",
            href,
            "bad" if is_above else "good",
        ),
    ]
