from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http.response import HttpResponseBase
from django.utils.html import format_html

from analytics.exports.spreadsheet import MAX_EXPORTED, cost_table, csv_response
from analytics.models import ChartKind
from analytics.parameters.ranges import TimeRange
from analytics.presenters import spend
from analytics.queries.dimensions import Dimension
from analytics.queries.groups import list_free_models
from analytics.queries.measures import GROUPS
from console.dashboards.alerting import alert_address
from console.dashboards.keeping import keep_address, keep_figure
from console.usage.month import month_context
from core.roles import Right
from core.ui import formats
from core.ui.marks import id_link, status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.periods import CUSTOM
from core.ui.plots import Plot, Series, Unit
from core.ui.tables import Column, Empty, Numbered, Table, page_link
from core.ui.tiles import Tile
from core.wire.pagination import Page as ListPage
from core.wire.shown import shown
from integrations.pricing.models import SOURCE_TITLES
from integrations.pricing.selectors import applied_price
from integrations.registry import provider_title
from prompts.selectors import prompt_names

PAGE_ROWS = 25

_REQUESTS = "analytics_requests_changelist"
_LABELS: Mapping[Dimension, str] = {
    Dimension.MODEL: "Model",
    Dimension.PROVIDER: "Provider",
    Dimension.DEPLOYMENT: "Deployment",
    Dimension.USER: "User",
    Dimension.API_KEY: "API key",
    Dimension.TEAM: "Team",
    Dimension.SESSION: "Session",
    Dimension.PROMPT: "Prompt",
    Dimension.PROMPT_VERSION: "Prompt version",
    Dimension.SOURCE: "Source",
    Dimension.OPERATION: "Operation",
}
# The filter of the request log that chooses the requests of a key.
_FILTERS: Mapping[Dimension, str] = {
    Dimension.MODEL: "model",
    Dimension.PROVIDER: "provider",
    Dimension.DEPLOYMENT: "deployment",
    Dimension.USER: "user_id",
    Dimension.API_KEY: "api_key_id",
    Dimension.TEAM: "team_id",
    Dimension.SESSION: "session_id",
    Dimension.PROMPT: "prompt_config_id",
    Dimension.SOURCE: "source",
    Dimension.OPERATION: "operation",
}
_NONE: Mapping[Dimension, str] = {
    Dimension.MODEL: "before any model",
    Dimension.PROVIDER: "before any provider",
    Dimension.DEPLOYMENT: "before any provider",
    Dimension.USER: "without a user",
    Dimension.API_KEY: "without a key",
    Dimension.TEAM: "without a team",
    Dimension.PROMPT: "without a managed prompt",
    Dimension.PROMPT_VERSION: "without a managed prompt",
}
_DELETED: Mapping[Dimension, str] = {
    Dimension.API_KEY: "deleted key {}",
    Dimension.TEAM: "deleted team {}",
}
# The pages of these keys, by the names of their URLs.
_OF_PERSONS = {Dimension.USER: "user", Dimension.SESSION: "session"}


class UsagePage(Page):
    route = "usage/"
    name = "usage"
    title = "Usage and cost"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        chosen = _dimension(visit)
        return {
            "dimensions": [
                {
                    "label": label,
                    "href": page_link(visit.request.GET, group_by=str(one), p=""),
                    "is_chosen": one is chosen,
                }
                for one, label in _LABELS.items()
            ],
            "export_address": _export_address(visit, chosen),
            "caches_address": visit.link_if_there("prompt_caches"),
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        dimension = _dimension(visit)
        label = _LABELS[dimension].lower().replace("api", "API")
        return [
            Panel("month", "This month", "usage/month.html", lambda: month_context(visit), is_wide=True),
            Panel(
                "spend",
                f"Cost by {label}",
                "usage/spend.html",
                lambda: _spend(visit, dimension),
                is_wide=True,
                is_of_log=True,
            ),
            Panel(
                "intervals", "Over time", "panels/plot.html", lambda: {"plot": _plot(visit, dimension)}, is_of_log=True
            ),
            Panel("gaps", "Models without a price, or free", "usage/price_gaps.html", lambda: _gaps(visit)),
        ]


class UsageExportPage(Page):
    route = "usage/export/"
    name = "usage_export"
    title = "Usage and cost as CSV"
    parent = "usage"

    def render(self, visit: Visit, panels: Sequence[Panel] = (), **context: Any) -> HttpResponseBase:
        dimension = _dimension(visit)
        found = spend.cost_by(visit.project.pk, _range(visit), ListPage(MAX_EXPORTED, 0), group_by=dimension)
        return csv_response(f"cost-by-{dimension}.csv", cost_table(found.results))


def _dimension(visit: Visit) -> Dimension:
    given = visit.request.GET.get("group_by", "")
    return Dimension(given) if given in _LABELS else Dimension.MODEL


def _range(visit: Visit) -> TimeRange:
    return TimeRange(visit.period.start, visit.period.end)


def _export_address(visit: Visit, dimension: Dimension) -> str:
    bounds = {"start": visit.period.start.isoformat(), "end": visit.period.end.isoformat()}
    return visit.link("usage_export", group_by=dimension, range=CUSTOM, **bounds)


def _spend(visit: Visit, dimension: Dimension) -> dict[str, Any]:
    numbered = Numbered(visit.request.GET, PAGE_ROWS)
    found = spend.cost_by(visit.project.pk, _range(visit), numbered.page, group_by=dimension)
    names = prompt_names(visit.project.pk, [one["key"] for one in found.results]) if "prompt" in dimension else {}
    return {
        "tiles": _tiles(visit, found.more),
        "table": Table(
            caption=f"{formats.number(found.count)} in all, the highest cost first",
            columns=_columns(visit, dimension, names),
            rows=found.results,
            empty=visit.nothing("No request in this range.", visit.link_if_there(_REQUESTS), "See the requests"),
            keep=_keep(
                visit, dimension, ChartKind.TABLE, "total_cost_usd", "request_count", "total_tokens", "error_rate"
            ),
            **numbered.links(found.count, is_counted=False),
        ),
    }


def _tiles(visit: Visit, totals: Mapping[str, Any]) -> list[Tile]:
    before = totals["range_before"]

    def note(name: str, shown: Any) -> str:
        changed = formats.change(totals[name], before[name])
        return f"{changed} against {shown(before[name])} before" if changed else f"{shown(before[name])} before"

    def links(figure: str) -> dict[str, str]:
        return {"keep": keep_figure(visit, figure), "alert": alert_address(visit, figure)}

    cost, requests = totals["total_cost_usd"], totals["request_count"]
    return [
        Tile("Cost", formats.money(cost), note("total_cost_usd", formats.money), **links("total_cost_usd")),
        Tile("Requests", formats.number(requests), note("request_count", formats.number), **links("request_count")),
        Tile(
            "Tokens",
            formats.number(totals["total_tokens"]),
            note("total_tokens", formats.number),
            **links("total_tokens"),
        ),
        Tile(
            "Cost of a request",
            formats.money(cost / requests if requests else None),
            "on average",
            **links("average_cost_usd"),
        ),
    ]


def _columns(visit: Visit, dimension: Dimension, names: Mapping[str, str]) -> list[Column]:
    def name(row: Mapping[str, Any]) -> Any:
        key = row["key"]
        if not key:
            return _NONE.get(dimension, formats.NONE)
        href = _requests(visit, dimension, key)
        if dimension in _OF_PERSONS:
            return id_link(visit.link_if_there(_OF_PERSONS[dimension], visit.project.pk, key) or href, key)
        shown = names.get(key) or _name_of(dimension, row)
        return format_html('<a href="{}">{}</a>', href, shown) if href else shown

    def now_and_before(row: Mapping[str, Any]) -> str:
        return formats.change(row["total_cost_usd"], row["previous"]["total_cost_usd"]) or formats.NONE

    return [
        Column("name", _LABELS[dimension], name),
        Column("cost", "Cost", lambda row: _cost(row), is_numeric=True),
        Column("share", "Share", lambda row: formats.share(row["percentage"] / 100), is_numeric=True),
        Column("before", "Before", lambda row: formats.money(row["previous"]["total_cost_usd"]), is_numeric=True),
        Column("change", "Change", now_and_before, is_numeric=True),
        Column("requests", "Requests", lambda row: formats.number(row["request_count"]), is_numeric=True),
        Column("tokens", "Tokens", lambda row: formats.number(row["total_tokens"]), is_numeric=True),
        Column("errors", "Failed", lambda row: formats.share(row["error_rate"]), is_numeric=True),
    ]


def _name_of(dimension: Dimension, row: Mapping[str, Any]) -> str:
    if dimension in _DELETED and row["name"] == row["key"]:
        return _DELETED[dimension].format(row["key"])
    return str(row["name"])


def _cost(row: Mapping[str, Any]) -> Any:
    unpriced = row["unpriced_request_count"]
    if not unpriced or not row["key"]:
        return formats.money(row["total_cost_usd"])
    note = f"without {formats.number(unpriced)} of unknown cost"
    return format_html("{} <small>{}</small>", formats.money(row["total_cost_usd"]), note)


def _requests(visit: Visit, dimension: Dimension, key: str) -> str:
    if dimension is Dimension.PROMPT_VERSION:
        config, _, version = key.partition("/")
        return visit.link_if_there(_REQUESTS, prompt_config_id=config, prompt_version=version)
    return visit.link_if_there(_REQUESTS, **{_FILTERS[dimension]: key})


def _plot(visit: Visit, dimension: Dimension) -> Plot:
    found = spend.cost_intervals(visit.project.pk, _range(visit), group_by=dimension)
    names = prompt_names(visit.project.pk, [one["key"] for one in found["series"]]) if "prompt" in dimension else {}
    series = [
        Series(
            (names.get(one["key"]) or _name_of(dimension, one)) if one["key"] else _NONE.get(dimension, "none"),
            one["total_cost_usd"],
        )
        for one in found["series"]
    ]
    if any(found["other"]["total_cost_usd"]):
        series.append(Series("all others", found["other"]["total_cost_usd"]))
    return Plot(
        title=f"Cost by {found['interval']} and {_LABELS[dimension].lower().replace('api', 'API')}",
        times=found["starts"],
        series=series,
        unit=Unit.MONEY,
        kind="stacked",
        brush=visit.link_if_there(_REQUESTS),
        keep=_keep(visit, dimension, ChartKind.BARS, "total_cost_usd"),
    )


def _keep(visit: Visit, dimension: Dimension, kind: ChartKind, *figures: str) -> str:
    if dimension not in GROUPS:
        return ""
    title = f"Cost by {_LABELS[dimension].lower().replace('api', 'API')}"
    return keep_address(visit, title, kind, figures, group_by=str(dimension))


def _gaps(visit: Visit) -> dict[str, Any]:
    project_id = visit.project.pk
    found = spend.price_gaps(project_id, _range(visit), ListPage(PAGE_ROWS, 0))
    free = [shown(row) for row in list_free_models(_range(visit).of(project_id))][:PAGE_ROWS]
    prices = visit.link_if_there("prices")
    requests = _REQUESTS

    def price(row: Mapping[str, Any]) -> Any:
        if not row["unpriced_request_count"]:
            applied = applied_price(project_id, row["provider"], row["model"])
            return f"free, says {SOURCE_TITLES[applied.source]}" if applied else "free, says the provider"
        if row["has_price_now"]:
            return status("has a price now", "good")
        label = status("no price", "warn")
        if not row["provider"] or not visit.may(Right.ADMINISTER):
            return label
        href = visit.link("price", provider=row["provider"], model=row["model"])
        return format_html('{} <a href="{}">Set one</a>', label, href)

    return {
        "table": Table(
            caption="Models that were used without a known price, whose cost is in no sum, or for nothing",
            columns=[
                Column("model", "Model", lambda row: row["model"]),
                Column("provider", "Provider", lambda row: provider_title(row["provider"]) or formats.NONE),
                Column(
                    "unpriced",
                    "Without a price",
                    lambda row: formats.number(row["unpriced_request_count"]),
                    is_numeric=True,
                ),
                Column("tokens", "Tokens", lambda row: formats.number(row["total_tokens"]), is_numeric=True),
                Column("price", "Price", price),
            ],
            rows=[*found.results, *free],
            empty=Empty("Every model of this range has a price.", prices, "See all prices" if prices else ""),
            key=lambda row: visit.link_if_there(requests, provider=row["provider"], model=row["model"]),
        ),
        "left_out": max(0, found.count - PAGE_ROWS),
    }
