from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils.html import format_html

from analytics.parameters.ranges import TimeRange
from analytics.presenters import metrics
from analytics.queries.usage import Interval
from console.settings_form.base import SettingsFormPage
from console.settings_form.form import SectionForm
from console.settings_form.wording import LIMITS
from core.ui.formats import moment, money, number, share
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.plots import Plot, Series, Threshold, Unit
from core.ui.tables import Column, Empty, Table
from core.ui.tiles import Tile
from core.wire.pagination import MAXIMUM_LIMIT
from core.wire.pagination import Page as ListPage
from gateway.models import GatewaySettings
from gateway.project_settings.sections import ALERTS, BUDGETS, END_USERS, RATES
from gateway.reports.limit_usage import month_usage, usage_of
from gateway.selectors import project_settings
from gateway.tables.alert import BudgetAlert

_RATES = timedelta(hours=3)
_NEARLY, _ALL = 0.8, 1.0
_ALERTS = 12


class LimitsPage(SettingsFormPage):
    route = "limits/"
    name = "limits"
    title = "Limits and budgets"
    sections = (RATES, BUDGETS, END_USERS, ALERTS)

    def shown(self, visit: Visit, form: SectionForm | None, row: GatewaySettings) -> dict[str, Any]:
        return {**super().shown(visit, form, row), "end_users_address": visit.link_if_there("end_users")}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [
            Panel("now", "Now", "limits/now.html", lambda: _now(visit), is_wide=True, refresh_seconds=30),
            Panel("month", "Spend of this month", "panels/plot.html", lambda: {"plot": _month(visit)}),
            Panel("requests", "Requests per minute", "panels/plot.html", lambda: {"plot": _rates(visit, "requests")}),
            Panel("tokens", "Tokens per minute", "panels/plot.html", lambda: {"plot": _rates(visit, "tokens")}),
            Panel.of_table("refused", "What limits refused", lambda: _refused(visit)),
            Panel.of_table("alerts", "Alerts", lambda: _alerts(visit), is_wide=True),
        ]


def _now(visit: Visit) -> Mapping[str, Any]:
    """Raises the errors of analytics only if neither store knows a spend."""
    found = usage_of(visit.project.pk, "")
    settings = project_settings(visit.project.pk)
    minute, month = found["minute"], found["month"]
    return {
        "tiles": [
            _rate_tile("Requests this minute", minute["requests"]),
            _rate_tile("Tokens this minute", minute["tokens"]),
            _spend_tile(month),
            _forecast_tile(month),
            Tile("Budget of a session", _limit_in_words(settings.session_budget_usd)),
        ],
        "is_certain": month["is_certain"],
        "hard_stop": month["hard_stop"],
    }


def _rate_tile(label: str, rate: Mapping[str, Any]) -> Tile:
    if rate["limit"] is None:
        return Tile(label, number(rate["used"]), note="no limit")
    used = rate["used"] / rate["limit"]
    return Tile(label, f"{number(rate['used'])} of {number(rate['limit'])}", note=share(used), kind=_kind(used))


def _spend_tile(month: Mapping[str, Any]) -> Tile:
    spent = money(month["spent_usd"])
    if month["budget_usd"] is None:
        return Tile("Spent this month", spent, note="no budget")
    if not month["budget_usd"]:
        return Tile("Spent this month", f"{spent} of $0", note="nothing may be spent", kind="bad")
    used = month["spent_usd"] / month["budget_usd"]
    note = f"{share(used)}, {money(month['remaining_usd'])} left"
    return Tile("Spent this month", f"{spent} of {money(month['budget_usd'])}", note=note, kind=_kind(used))


def _forecast_tile(month: Mapping[str, Any]) -> Tile:
    budget = month["budget_usd"]
    over = budget is not None and month["forecast_usd"] > budget
    note = (
        ""
        if budget is None
        else f"{money(month['forecast_usd'] - budget)} above the budget"
        if over
        else "within budget"
    )
    return Tile("Forecast for the month", money(month["forecast_usd"]), note=note, kind="bad" if over else "neutral")


def _limit_in_words(limit: Decimal | None) -> str:
    return "no limit" if limit is None else money(limit)


def _kind(used: float) -> str:
    return "bad" if used >= _ALL else "warn" if used >= _NEARLY else "neutral"


def _month(visit: Visit) -> Plot:
    now = datetime.now(UTC)
    start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    days = metrics.daily_costs(visit.project.pk, TimeRange(start, now), ListPage(31, 0)).results
    costs = {day["date"]: day["total_cost_usd"] for day in days}
    dates = sorted(costs)
    settings = project_settings(visit.project.pk)
    thresholds = []
    if settings.monthly_budget_usd is not None:
        thresholds.append(Threshold("budget", settings.monthly_budget_usd, kind="bad"))
    forecast_usd = month_usage(visit.project.pk)["forecast_usd"]
    if forecast_usd:
        thresholds.append(Threshold("forecast", forecast_usd))
    return Plot(
        title="Spend since the first of the month",
        times=[datetime(day.year, day.month, day.day, tzinfo=UTC) for day in dates],
        series=[Series("spent", [sum(costs[day] for day in dates[: place + 1]) for place in range(len(dates))])],
        unit=Unit.MONEY,
        thresholds=thresholds,
    )


def _rates(visit: Visit, which: str) -> Plot:
    end = datetime.now(UTC)
    time_range = TimeRange(end - _RATES, end)
    page = ListPage(MAXIMUM_LIMIT, 0)
    minutes = metrics.usage(visit.project.pk, time_range, page, interval=Interval.MINUTE).results[::-1]
    field, limit_field = {
        "requests": ("request_count", "rate_limit_rpm"),
        "tokens": ("total_tokens", "rate_limit_tpm"),
    }[which]
    settings = project_settings(visit.project.pk)
    limit = getattr(settings, limit_field) if settings.rate_limit_enabled else None
    return Plot(
        title="The last three hours",
        times=[minute["start"] for minute in minutes],
        series=[Series(f"{which} per minute", [minute[field] for minute in minutes])],
        unit=Unit.TOKENS if which == "tokens" else Unit.COUNT,
        thresholds=[Threshold("limit", limit, kind="bad")] if limit else [],
    )


def _refused(visit: Visit) -> Table:
    time_range = TimeRange(visit.period.start, visit.period.end)
    errors = metrics.errors(visit.project.pk, time_range, ListPage(MAXIMUM_LIMIT, 0)).results
    rows: dict[str, dict[str, Any]] = {}
    for error in errors:
        if error["code"] in LIMITS:
            row = rows.setdefault(error["code"], {"code": error["code"], "count": 0, "last_seen": error["last_seen"]})
            row["count"] += error["error_count"]
            row["last_seen"] = max(row["last_seen"], error["last_seen"])

    def requests(row: Mapping[str, Any]) -> Any:
        return visit.linked(number(row["count"]), "analytics_requests_changelist", error_code=row["code"])

    return Table(
        caption="Refused requests by limit",
        columns=[
            Column("limit", "Limit", lambda row: LIMITS[row["code"]]),
            Column("count", "Refused", requests, is_numeric=True),
            Column("last", "Last", lambda row: moment(row["last_seen"])),
        ],
        rows=sorted(rows.values(), key=lambda row: -row["count"]),
        empty=visit.nothing(f"No limit refused a request: {visit.period.label.lower()}."),
    )


def _alerts(visit: Visit) -> Table:
    alerts = BudgetAlert.objects.for_project(visit.project.pk).prefetch_related("deliveries").order_by("-created_at")
    return Table(
        caption="The latest alerts",
        columns=[
            Column("time", "Time", lambda row: moment(row.created_at)),
            Column("month", "Month", lambda row: row.month),
            Column("threshold", "At", lambda row: f"{row.threshold_percent} %", is_numeric=True),
            Column("spent", "Spent", lambda row: money(row.spent_usd), is_numeric=True),
            Column("budget", "Of", lambda row: money(row.budget_usd), is_numeric=True),
            Column("sent", "Sent", _deliveries),
        ],
        rows=list(alerts[:_ALERTS]),
        empty=Empty("No alert was sent."),
    )


def _deliveries(alert: BudgetAlert) -> Any:
    badges = [
        status(one.state, _STATES.get(one.state, "neutral"), f"{one.channel} {one.state}")
        for one in alert.deliveries.all()
    ]
    return format_html("{} " * len(badges), *badges) if badges else "to nobody"


_STATES = {"delivered": "good", "failed": "bad", "pending": "warn"}
