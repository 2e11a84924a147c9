from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.html import format_html

from analytics.models import ChartKind
from analytics.parameters.ranges import TimeRange
from analytics.presenters import metrics
from analytics.presenters.providers import error_groups
from analytics.presenters.spend import range_before
from analytics.queries.error_groups import FIELDS
from analytics.queries.request_facets import list_facets
from analytics.queries.request_filters import RequestFilter, conditions_of
from console.dashboards.alerting import alert_address
from console.dashboards.keeping import keep_address, keep_figure
from console.requests.peek import PEEK, peek_panels
from console.requests.query import QueryProblem, parse_query
from core.roles import Right
from core.ui import formats
from core.ui.filters import Facet, FacetValue, FilterField, Filters
from core.ui.marks import id_link
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.plots import Plot, Series, Sparkline, Unit, render
from core.ui.tables import Column, Empty, Numbered, Table, page_link
from core.ui.tiles import Tile
from integrations.registry import provider_title

PAGE_ROWS = 25
# The plot of all errors names the most frequent groups; the colours of a plot are six.
_NAMED_SERIES = 5
_SPARKLINE_POINTS = 45
_REQUESTS = "analytics_requests_changelist"
_FAILED = ("error", "interrupted")
_FIELDS = tuple(
    FilterField(name, label, is_several=True)
    for name, label in (
        ("error_code", "Error code"),
        ("model", "Model"),
        ("provider", "Provider"),
        ("operation", "Operation"),
        ("error_type", "Error type"),
        ("status_code", "HTTP status"),
    )
)


class ErrorsPage(Page):
    route = "errors/"
    name = "errors"
    title = "Errors"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        query = visit.request.GET
        try:
            _chosen(visit)
        except QueryProblem as problem:
            return {"filters": Filters(_FIELDS, query, errors=problem.errors)}
        return {
            "filters": Filters(_FIELDS, query),
            "is_readable": True,
            "columns": Table("Errors", _columns(visit), [], Empty(""), query=query, has_chooser=True),
            "peek_close": page_link(query, peek="") if query.get(PEEK) else "",
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        try:
            filters = _chosen(visit)
        except QueryProblem:
            return ()
        return [
            Panel("facets", "Filters", "ui/facets.html", lambda: _facets(visit, filters)),
            Panel("totals", "Errors in this range", "panels/tiles.html", lambda: _totals(visit), is_of_log=True),
            Panel(
                "groups",
                "By code, model and provider",
                "errors/errors.html",
                lambda: _groups(visit, filters),
                is_of_log=True,
            ),
            *peek_panels(visit),
        ]


def _chosen(visit: Visit) -> RequestFilter:
    filters = parse_query(visit, further=("p",)).filters
    given = conditions_of(filters).conditions.keys() - {"start", "end"}
    if others := sorted(given - set(FIELDS)):
        raise QueryProblem({name: ["Kinds of errors are not told apart by it."] for name in others})
    return replace(filters, start=None, end=None)


def _facets(visit: Visit, filters: RequestFilter) -> Mapping[str, Any]:
    failed = replace(filters, start=visit.period.start, end=visit.period.end, outcome=_FAILED)
    found = {one.name: one for one in list_facets(visit.project.pk, failed, without_own=True).facets}
    facets = [
        Facet(
            item.name,
            item.label,
            [FacetValue(one.value, one.request_count, _named(item.name, one.value)) for one in entry.values],
        )
        for item in _FIELDS
        if (entry := found.get(item.name))
    ]
    return {"filters": Filters(_FIELDS, visit.request.GET, facets=facets)}


def _totals(visit: Visit) -> dict[str, Any]:
    shown = TimeRange(visit.period.start, visit.period.end)
    past = range_before(shown, shown.end)
    now, before = metrics.totals_compared(visit.project.pk, shown, past)
    return {
        "tiles": [
            Tile(
                "Failed requests",
                formats.number(now.error_count),
                _compared(now.error_count, before.error_count),
                visit.link_if_there(_REQUESTS, outcome="error"),
                "bad" if now.error_count else "good",
                keep_figure(visit, "error_count"),
                alert_address(visit, "error_count"),
            ),
            Tile(
                "Share of all requests",
                formats.share(now.error_rate if now.request_count else None),
                f"{formats.share(before.error_rate if before.request_count else None)} in the range before",
                keep=keep_figure(visit, "error_rate"),
                alert=alert_address(visit, "error_rate"),
            ),
            Tile(
                "Cancelled by clients",
                formats.number(now.cancelled_count),
                _compared(now.cancelled_count, before.cancelled_count),
                visit.link_if_there(_REQUESTS, outcome="cancelled"),
            ),
            Tile(
                "All requests",
                formats.number(now.request_count),
                _compared(now.request_count, before.request_count),
                visit.link_if_there(_REQUESTS),
            ),
        ]
    }


def _compared(now: float, before: float) -> str:
    changed = formats.change(now, before)
    return f"{changed} against the range before" if changed else f"{formats.number(before)} in the range before"


def _named(field: str, value: str) -> str:
    return provider_title(value) if field == "provider" else value


def _groups(visit: Visit, filters: RequestFilter) -> dict[str, Any]:
    numbered = Numbered(visit.request.GET, PAGE_ROWS)
    time_range = TimeRange(visit.period.start, visit.period.end)
    found = error_groups(visit.project.pk, time_range, numbered.page, filters=filters)
    return {
        "plot": None if numbered.number > 1 or not found.results else _plot(visit, found.results, found.more["starts"]),
        "table": Table(
            caption=f"{found.count} kind{'' if found.count == 1 else 's'} of errors, the most frequent first",
            columns=_columns(visit),
            rows=found.results,
            empty=visit.nothing("No request failed in this range.", visit.link_if_there(_REQUESTS), "See all requests"),
            keep=keep_address(visit, "Error codes", ChartKind.RANKING, ["error_count"], group_by="error_code"),
            key=lambda group: page_link(visit.request.GET, peek=str(group["sample_request_id"] or "")),
            is_current=lambda group: str(group["sample_request_id"]) == visit.request.GET.get(PEEK),
            has_chooser=True,
            **numbered.links(found.count, is_counted=False),
        ),
    }


def _plot(visit: Visit, groups: Sequence[Mapping[str, Any]], starts: Sequence[Any]) -> Plot:
    codes: dict[str, list[int]] = {}
    for group in groups:
        name = _code(group)
        counts = codes.setdefault(name if name in codes or len(codes) < _NAMED_SERIES else "other", [0] * len(starts))
        counts[:] = [sum(pair) for pair in zip(counts, group["counts"], strict=True)]
    return Plot(
        title="Errors over time",
        times=starts,
        series=[Series(name, counts) for name, counts in codes.items()],
        unit=Unit.COUNT,
        kind="stacked",
        brush=visit.link_if_there(_REQUESTS, outcome="error"),
        keep=keep_address(visit, "Errors over time", ChartKind.BARS, ["error_count"], group_by="error_code"),
        caption=False,
        is_slim=True,
    )


def _columns(visit: Visit) -> list[Column]:
    def sample(group: Mapping[str, Any]) -> Any:
        request_id = group["sample_request_id"]
        if request_id is None:
            return formats.NONE
        return id_link(visit.link_if_there("analytics_requests_detail", visit.project.pk, request_id), request_id)

    def count(group: Mapping[str, Any]) -> Any:
        # Text that is empty in a group filters nothing.
        return visit.linked(formats.number(group["error_count"]), _REQUESTS, **_filters(group))

    return [
        Column("code", "Code", _code),
        Column("model", "Model", lambda group: group["model"] or "before any model"),
        Column("provider", "Provider", _provider),
        Column("status", "Status", lambda group: ", ".join(map(str, group["status_codes"]))),
        Column("count", "Errors", count, is_numeric=True),
        Column("share", "Share", lambda group: formats.share(group["percentage"] / 100), is_numeric=True),
        Column("plot", "Over time", _sparkline, gives_way=True),
        Column("first", "First seen", lambda group: formats.moment(group["first_seen"]), is_default=False),
        Column("last", "Last seen", lambda group: formats.moment(group["last_seen"])),
        Column("sample", "Latest request", sample, is_default=False),
        Column("type", "Type", lambda group: group["type"], is_default=False),
        Column("dataset", "Data set", lambda group: _dataset(visit, group), is_default=False),
    ]


def _sparkline(group: Mapping[str, Any]) -> Any:
    title = f"{_code(group)} of {group['model'] or 'no model'}"
    return render(Sparkline(title, _summed(group["counts"]), Unit.COUNT, "bad"))


def _summed(counts: Sequence[int]) -> list[int]:
    size = -(-len(counts) // _SPARKLINE_POINTS)
    return [sum(counts[first : first + size]) for first in range(0, len(counts), size)]


def _provider(group: Mapping[str, Any]) -> str:
    return provider_title(group["provider"]) if group["provider"] else formats.NONE


def _code(group: Mapping[str, Any]) -> str:
    return str(group["code"] or group["type"] or "without a code")


def _dataset(visit: Visit, group: Mapping[str, Any]) -> Any:
    href = visit.link_if_there("datasets", take="1", **_filters(group)) if visit.may(Right.EDIT) else ""
    return format_html('<a href="{}">To a data set</a>', href) if href else formats.NONE


def _filters(group: Mapping[str, Any]) -> dict[str, Any]:
    names = {"error_code": "code", "error_type": "type", "provider": "provider", "model": "model"}
    return {field: group[name] for field, name in names.items()}
