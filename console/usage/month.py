from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import daily_costs
from core.ui import formats
from core.ui.pages import Visit
from core.ui.plots import Plot, Series, Threshold, Unit
from core.ui.tiles import Tile
from core.wire.pagination import Page as ListPage
from gateway.reports.limit_usage import usage_of

_DAY = timedelta(days=1)
_MAX_DAYS = 31


def month_context(visit: Visit) -> dict[str, Any]:
    """Returns what `GET usage` says of the month, the cumulative cost by day, and the forecast from today on."""
    now = datetime.now(UTC)
    month = usage_of(visit.project.pk, "", now)["month"]
    start, end = (datetime.fromisoformat(month[name]) for name in ("start", "end"))
    days = daily_costs(visit.project.pk, TimeRange(start, now), ListPage(_MAX_DAYS, 0)).results
    return {
        "sentence": _sentence(month, end),
        "kind": _kind(month),
        "tiles": _tiles(month, visit),
        "plot": _plot(month, start, end, [day["total_cost_usd"] for day in reversed(days)]),
        "hard_stop": month["hard_stop"] and month["budget_usd"] is not None,
        "is_certain": month["is_certain"],
        "limits_address": visit.link_if_there("limits"),
    }


def _sentence(month: dict[str, Any], end: datetime) -> str:
    budget, expected = month["budget_usd"], month["forecast_usd"]
    until = formats.day((end - _DAY).date())
    forecast = f"At this pace the month comes to {formats.money(expected)} by {until}"
    if budget is None:
        return f"{forecast}. There is no budget."
    if month["spent_usd"] > budget:
        return (
            f"The budget of {formats.money(budget)} is spent: {formats.money(month['spent_usd'])} so far. {forecast}."
        )
    over = expected - budget
    if over > 0:
        part = formats.share(over / budget) if budget else formats.UNKNOWN
        return f"{forecast}: {formats.money(over)} over the budget of {formats.money(budget)} ({part})."
    return f"{forecast}, within the budget of {formats.money(budget)}."


def _kind(month: dict[str, Any]) -> str:
    budget = month["budget_usd"]
    if budget is None:
        return "neutral"
    if month["spent_usd"] > budget:
        return "bad"
    return "warn" if month["forecast_usd"] > budget else "good"


def _tiles(month: dict[str, Any], visit: Visit) -> list[Tile]:
    budget, spent = month["budget_usd"], month["spent_usd"]
    used = f"{formats.share(spent / budget)} of the budget" if budget else ""
    limits = visit.link_if_there("limits")
    return [
        Tile("Spent this month", formats.money(spent), used),
        Tile("Forecast", formats.money(month["forecast_usd"]), "for the whole month", kind=_kind(month)),
        Tile("Budget", formats.money(budget) if budget is not None else "none", "a month", limits),
        Tile("Left", formats.money(month["remaining_usd"]) if budget is not None else formats.NONE, "of the budget"),
    ]


def _plot(month: dict[str, Any], start: datetime, end: datetime, costs: list[float]) -> Plot:
    times = [start + number * _DAY for number in range((end - start) // _DAY)]
    spent = list(accumulate((Decimal(str(cost)) for cost in costs), initial=Decimal(0)))[1:]
    today, left = len(spent) - 1, len(times) - len(spent)
    so_far = spent[today] if spent else Decimal(0)
    expected = max(Decimal(str(month["forecast_usd"])), so_far)
    steps = [so_far + (expected - so_far) * step / left for step in range(left + 1)] if left else [so_far]
    budget = month["budget_usd"]
    return Plot(
        title="Spend of the month, added up by day (UTC)",
        times=times,
        series=[
            Series("spent", [*spent, *[None] * left]),
            Series("forecast", [*[None] * max(today, 0), *steps], kind="neutral"),
        ],
        unit=Unit.MONEY,
        thresholds=[] if budget is None else [Threshold("budget", budget, kind="bad")],
        step=_DAY,
        until_now=False,
    )
