from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.models import ChartKind, ListPage
from analytics.presenters import requests
from analytics.presenters.requests import request_page
from analytics.queries.request_facets import list_facets
from analytics.queries.request_histogram import RequestHistogram
from analytics.queries.request_sorting import RequestSort
from analytics.scores.selectors import scores_by_request
from analytics.wire.texts import request_without_texts
from console.dashboards.alerting import alert_address
from console.dashboards.keeping import keep_address
from console.requests.columns import columns_of
from console.requests.fields import facets_of, named_fields
from console.requests.peek import PEEK, peek_panels
from console.requests.query import QueryProblem, RequestQuery, chosen_filters, parse_query
from console.saved_views.forms import handle_view_form, view_context
from core.models import ApiKey
from core.ui.filters import FilterField, Filters
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.plots import Plot, Series
from core.ui.tables import Empty, Table, page_link
from core.wire.pagination import CursorListing
from prompts.models import PromptConfig

LIMIT = 50
_ORDERS = {
    RequestSort.NEWEST: "the newest",
    RequestSort.OLDEST: "the oldest",
    RequestSort.SLOWEST: "the slowest",
    RequestSort.FASTEST: "the fastest",
    RequestSort.DEAREST: "the dearest",
    RequestSort.CHEAPEST: "the cheapest",
    RequestSort.SLOWEST_TO_BEGIN: "the latest first token",
    RequestSort.FASTEST_TO_BEGIN: "the earliest first token",
}


class RequestsPage(Page):
    name = "analytics_requests_changelist"
    route = "analytics/requests/"
    title = "Requests"

    def respond(self, request: HttpRequest, **route: Any) -> HttpResponseBase:
        # Addresses from before had the session's id under this name, and pages by number.
        if request.method != "POST" and ("session" in request.GET or "p" in request.GET):
            query = request.GET.copy()
            query.pop("p", None)
            for session_id in query.pop("session", [])[-1:]:
                query["session_id"] = session_id
            return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")
        return super().respond(request, **route)

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        query, errors = visit.request.GET, _problems(visit)
        exported = chosen_filters(query)
        return {
            "filters": Filters(_fields(visit), query, errors=errors),
            "is_readable": not errors,
            "columns": _chooser(visit),
            "peek_close": page_link(query, peek="") if query.get(PEEK) else "",
            "export": visit.link_if_there("analytics_requests_export", **exported),
            "review": visit.link_if_there("reviews", **chosen_filters(query)),
            "dataset": visit.link_if_there("datasets", **{"take": "1", **chosen_filters(query)}),
            "experiment": visit.link_if_there("experiment_form", **chosen_filters(query)),
            "alert": alert_address(visit, "error_rate", filters=chosen_filters(query)),
            **view_context(visit, ListPage.REQUESTS),
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        try:
            request_query = parse_query(visit)
        except QueryProblem:
            return ()
        return [
            Panel(
                "histogram", "Requests over time", "requests/histogram.html", partial(_histogram, visit, request_query)
            ),
            Panel("facets", "Filters", "requests/facets.html", partial(_facets, visit, request_query)),
            Panel(
                "requests", "The requests", "requests/rows.html", partial(_list, visit, request_query), is_of_log=True
            ),
            *peek_panels(visit),
        ]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        return handle_view_form(visit, ListPage.REQUESTS)


def _problems(visit: Visit) -> Mapping[str, Sequence[str]]:
    try:
        parse_query(visit)
    except QueryProblem as problem:
        return problem.errors
    return {}


def _histogram(visit: Visit, request_query: RequestQuery) -> Mapping[str, Any]:
    found = requests.histogram(visit.project.pk, request_query.filters, request_query.time_range)
    return {"histogram": found, "plot": _plot(visit, found)}


def _plot(visit: Visit, found: RequestHistogram) -> Plot:
    rows = found.results
    counts = {
        "ok": ("neutral", [row.ok_count for row in rows]),
        "cancelled": ("warn", [row.cancelled_count for row in rows]),
        "failed": ("bad", [row.error_count for row in rows]),
    }
    brush = page_link(visit.request.GET, range="custom", start="", end="", cursor="", peek="")
    return Plot(
        title=f"Requests by {found.interval}",
        times=[row.start for row in rows],
        series=[
            Series(name, values, kind)  # type: ignore[arg-type]  # the kinds are literals of this table
            for name, (kind, values) in counts.items()
            if name != "cancelled" or any(values)
        ],
        kind="stacked",
        brush=f"{visit.request.path}{brush}",
        keep=keep_address(
            visit,
            "Requests",
            ChartKind.BARS,
            ["request_count"],
            group_by="outcome",
            filters=chosen_filters(visit.request.GET),
        ),
        caption=False,
        empty="No requests in this range.",
        is_slim=True,
    )


def _facets(visit: Visit, request_query: RequestQuery) -> Mapping[str, Any]:
    entries = list_facets(visit.project.pk, request_query.filters, without_own=True).facets
    since = max((entry.counted_since for entry in entries if entry.counted_since), default=None)
    return {"filters": facets_of(entries, visit.request.GET, _fields(visit)), "counted_since": since}


def _list(visit: Visit, request_query: RequestQuery) -> Mapping[str, Any]:
    found = request_page(visit.project.pk, request_query.filters, request_query.sort, LIMIT, request_query.position)
    return {
        "table": _table(visit, request_query, found if visit.sees_content else found.shown_as(request_without_texts))
    }


def _table(visit: Visit, request_query: RequestQuery, found: CursorListing) -> Table:
    query, project_id = visit.request.GET, visit.project.pk
    scores = scores_by_request(project_id, [str(row["request_id"]) for row in found.results])
    numbers = {row["api_key_id"] for row in found.results if row["api_key_id"]}
    keys = ApiKey.objects.for_project(project_id).filter(pk__in=numbers).values_list("pk", "name")

    return Table(
        caption=f"Requests, {_ORDERS[request_query.sort]} first",
        columns=columns_of(visit, scores, dict(keys)),
        rows=found.results,
        empty=_empty(visit, request_query),
        query=query,
        sort=request_query.sort,
        count=found.count,
        next_url=page_link(query, cursor=found.next, peek="") if found.next else "",
        previous_url=page_link(query, cursor=found.previous, peek="") if found.previous else "",
        key=lambda row: page_link(query, peek=str(row["request_id"])),
        is_current=lambda row: str(row["request_id"]) == query.get(PEEK),
        has_chooser=True,
    )


def _chooser(visit: Visit) -> Table:
    return Table("Requests", columns_of(visit, {}), [], Empty(""), query=visit.request.GET, has_chooser=True)


def _fields(visit: Visit) -> Sequence[FilterField]:
    prompts = PromptConfig.objects.for_project(visit.project.pk).order_by("name").values_list("pk", "name")
    return named_fields(visit.project.pk, visit.request.GET, prompts)


def _empty(visit: Visit, request_query: RequestQuery) -> Empty:
    query = visit.request.GET
    if request_query.given:
        cleared = page_link(query, **dict.fromkeys(request_query.given, ""), cursor="")
        return visit.nothing("No request of this range fits these filters.", cleared, "Clear the filters")
    if visit.period.name != "30d":
        return visit.nothing(
            "No requests in this range.", page_link(query, range="30d", start="", end=""), "Last 30 days"
        )
    playground = visit.link_if_there("gateway_playground_changelist")
    return visit.nothing("No requests in the last 30 days.", playground, "Send one" if playground else "")
