from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.utils.html import format_html
from rest_framework.exceptions import ValidationError

from analytics.models import SESSION_ID_CHARACTERS, ListPage
from analytics.parameters.sessions import SessionListParameters
from analytics.presenters import sessions
from analytics.presenters.requests import request_page
from analytics.presenters.sessions import SessionPage, session_page
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_sorting import RequestSort
from analytics.queries.session_cursors import WholeSessionFilter
from analytics.queries.session_sorting import LATEST, SessionCursor
from analytics.wire.texts import lists_without_texts, request_without_texts
from console.requests.columns import text_cell
from console.requests.detail.links import Fact
from console.requests.peek import PEEK
from console.saved_views.forms import handle_view_form, view_context
from console.sessions.facts import session_facts, session_tiles
from core.errors import NotFoundError
from core.ui.filters import FilterField, Filters
from core.ui.formats import duration, moment, money, number
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Table, page_link

_LIMIT = 50
_MAX_ID_CHARACTERS = 60
_BEGINS, _CONTAINS, _PATTERN = "session", "contains", "name_pattern"
_FIELDS = (
    FilterField("session", "Id begins with"),
    FilterField("user_id", "User"),
    FilterField(
        "feedback", "Feedback", "choice", (("any", "any score"), ("good", "good, 4 or 5"), ("bad", "bad, 1 or 2"))
    ),
    FilterField("min_error_count", "Errors at least", "number"),
    FilterField("min_duration_seconds", "Lasted at least (s)", "number"),
    FilterField("max_duration_seconds", "Lasted at most (s)", "number"),
    FilterField("min_request_count", "Requests at least", "number"),
    FilterField("max_request_count", "Requests at most", "number"),
    FilterField("min_cost_usd", "Cost at least ($)", "number"),
    FilterField("max_cost_usd", "Cost at most ($)", "number"),
    FilterField(_CONTAINS, "Id contains"),
)


_LATEST = 8


def peek_panels(visit: Visit) -> Sequence[Panel]:
    chosen = visit.request.GET.get(PEEK, "")
    return [Panel(PEEK, "The chosen session", "sessions/peek.html", partial(_peek, visit, chosen))] if chosen else []


def _peek(visit: Visit, session_id: str) -> Mapping[str, Any]:
    if len(session_id) > SESSION_ID_CHARACTERS or "\x00" in session_id:
        return {"is_gone": True}
    project_id = visit.project.pk
    try:
        found = sessions.session(project_id, session_id)
    except NotFoundError:
        return {"is_gone": True}
    shown: Any = found if visit.sees_content else lists_without_texts(found)
    figures = [Fact(tile.label, tile.value) for tile in session_tiles(shown)]
    latest = request_page(project_id, RequestFilter(session_id=session_id), RequestSort.NEWEST, _LATEST)
    rows: Any = latest if visit.sees_content else latest.shown_as(request_without_texts)
    return {
        "found": shown,
        "facts": [*figures, *session_facts(visit, shown)[1:]],
        "latest": [
            (row, visit.link("analytics_requests_detail", project_id, row["request_id"]), text_cell(row))
            for row in rows.results
        ],
        "whole": visit.link("session", project_id, session_id),
        "log_url": visit.link_if_there("analytics_requests_changelist", session_id=session_id),
    }


def _fields(visit: Visit) -> Sequence[FilterField]:
    # Of addresses and saved views that were made with a pattern.
    has_pattern = bool(visit.request.GET.get(_PATTERN))
    return [*_FIELDS, FilterField(_PATTERN, "Id like")] if has_pattern else _FIELDS


class SessionsPage(Page):
    name = "sessions"
    route = "analytics/sessions/"
    title = "Sessions"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        query = visit.request.GET
        shared = {
            "columns": Table("Sessions", session_columns(visit), [], Empty(""), query=query, has_chooser=True),
            "peek_close": page_link(query, peek="") if query.get(PEEK) else "",
            **view_context(visit, ListPage.SESSIONS),
        }
        try:
            _chosen(visit)
        except ValidationError as error:
            return {"filters": Filters(_fields(visit), query, errors=_errors_of(error)), **shared}
        return {"filters": Filters(_fields(visit), query), **shared}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        def load() -> Mapping[str, Any]:
            filters, sort, after = _chosen(visit)
            page = session_page(visit.project.pk, filters, sort=sort, after=after, limit=_LIMIT)
            return {"table": _table(visit, page, sort)}

        return [Panel("sessions", "Sessions", "ui/lines.html", load, is_of_log=True), *peek_panels(visit)]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        return handle_view_form(visit, ListPage.SESSIONS)


def _chosen(visit: Visit) -> tuple[WholeSessionFilter, str, SessionCursor | None]:
    query = visit.request.GET
    names = (*(item.name for item in _fields(visit)), "sort", "cursor")
    given = {name: query[name] for name in names if query.get(name)}
    begins, contains = (_escaped(given.pop(name, "")) for name in (_BEGINS, _CONTAINS))
    if begins or contains:
        given.setdefault(_PATTERN, f"{begins}%{contains}%" if contains else f"{begins}%")
    bounds = {"start_date": visit.period.start.isoformat(), "end_date": visit.period.end.isoformat()}
    return SessionListParameters(data={**given, **bounds}).to_whole_filter()


def _errors_of(error: ValidationError) -> Mapping[str, Sequence[str]]:
    found = error.detail if isinstance(error.detail, dict) else {}
    return {name: [str(problem) for problem in problems] for name, problems in found.items()}


def _escaped(text: str) -> str:
    for character in ("\\", "%", "_"):
        text = text.replace(character, "\\" + character)
    return text


def session_columns(visit: Visit) -> Sequence[Column]:
    query = visit.request.GET

    def user(row: Mapping[str, Any]) -> Any:
        if not row["user_id"]:
            return ""
        return format_html('<a href="{}">{}</a>', _with_user(query, row["user_id"]), row["user_id"])

    return [
        Column("session", "Session", cell=lambda row: _short(row["session_id"])),
        Column("user", "User", cell=user),
        Column("last", "Last active", lambda row: moment(row["ended_at"]), "ended_at"),
        Column("lasted", "Lasted", _lasted, "duration_seconds", is_numeric=True, gives_way=True),
        Column("requests", "Requests", lambda row: number(row["request_count"]), "request_count", is_numeric=True),
        Column("errors", "Errors", _errors, "error_count", is_numeric=True),
        Column("tokens", "Tokens", lambda row: number(row["total_tokens"]), "total_tokens", is_numeric=True),
        Column("cost", "Cost", _cost, "total_cost_usd", is_numeric=True),
        Column("feedback", "Feedback", _feedback, "feedback_score", is_numeric=True),
        Column("first", "First request", lambda row: moment(row["started_at"]), "started_at", is_default=False),
    ]


def _table(visit: Visit, page: SessionPage, sort: str) -> Table:
    query = visit.request.GET
    return Table(
        caption="Sessions, the latest active first" if sort == LATEST else "Sessions",
        columns=session_columns(visit),
        rows=page.results,
        empty=_empty(visit),
        query=query,
        sort=sort,
        next_url=page_link(query, cursor=page.next_cursor, peek="") if page.next_cursor else "",
        previous_url=page_link(query, cursor=page.previous_cursor, peek="") if page.previous_cursor else "",
        key=lambda row: page_link(query, peek=row["session_id"]),
        is_current=lambda row: row["session_id"] == query.get(PEEK),
        has_chooser=True,
    )


def _empty(visit: Visit) -> Empty:
    query, fields = visit.request.GET, _fields(visit)
    if any(query.get(item.name) for item in fields):
        cleared = page_link(query, **{item.name: "" for item in fields}, cursor="")
        return visit.nothing("No session of this range matches these filters.", cleared, "Clear the filters")
    longer = page_link(query, range="30d", start="", end="", cursor="")
    return visit.nothing(
        "No request in this range named a session by x-svc-session-id.", longer, "Look at the last 30 days"
    )


def _with_user(query: QueryDict, user_id: str) -> str:
    return page_link(query, user_id=user_id, cursor="", peek="")


def _short(session_id: str) -> str:
    return session_id if len(session_id) <= _MAX_ID_CHARACTERS else session_id[:_MAX_ID_CHARACTERS] + "…"


def _lasted(row: Mapping[str, Any]) -> str:
    return duration((row["ended_at"] - row["started_at"]).total_seconds() * 1000)


def _errors(row: Mapping[str, Any]) -> Any:
    count = row["error_count"]
    return format_html('<span class="bad-text">{}</span>', number(count)) if count else "0"


def _cost(row: Mapping[str, Any]) -> str:
    return money(row["total_cost_usd"]) + (" +" if row["unpriced_request_count"] else "")


def _feedback(row: Mapping[str, Any]) -> str:
    score = row["feedback_score"]
    return "" if score is None else f"{score:.1f} of 5"
