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
from analytics.queries.session_cursors import SessionCursor, WholeSessionFilter
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
_BEGINS, _CONTAINS = "session", "name_pattern"
_FIELDS = (
    FilterField("session", "Id begins with"),
    FilterField("user_id", "User"),
    FilterField(
        "feedback", "Feedback", "choice", (("any", "any score"), ("good", "good, 4 or 5"), ("bad", "bad, 1 or 2"))
    ),
    FilterField("min_cost_usd", "Cost at least ($)", "number"),
    FilterField("max_cost_usd", "Cost at most ($)", "number"),
    FilterField("name_pattern", "Id like", help="% stands for any characters, _ for one."),
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
            return {"filters": Filters(_FIELDS, query, errors=_errors_of(error)), **shared}
        return {"filters": Filters(_FIELDS, query), **shared}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        def load() -> Mapping[str, Any]:
            filters, after = _chosen(visit)
            return {"table": _table(visit, session_page(visit.project.pk, filters, after=after, limit=_LIMIT))}

        return [Panel("sessions", "Sessions", "ui/lines.html", load), *peek_panels(visit)]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        return handle_view_form(visit, ListPage.SESSIONS)


def _chosen(visit: Visit) -> tuple[WholeSessionFilter, SessionCursor | None]:
    query = visit.request.GET
    given = {name: query[name] for name in (*(item.name for item in _FIELDS), "cursor") if query.get(name)}
    if begins := given.pop(_BEGINS, ""):
        given.setdefault(_CONTAINS, _escaped(begins) + "%")
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
        Column("last", "Last active", cell=lambda row: moment(row["ended_at"])),
        Column("lasted", "Lasted", cell=_lasted, is_numeric=True, gives_way=True),
        Column("requests", "Requests", cell=lambda row: number(row["request_count"]), is_numeric=True),
        Column("errors", "Errors", cell=_errors, is_numeric=True),
        Column("tokens", "Tokens", cell=lambda row: number(row["total_tokens"]), is_numeric=True),
        Column("cost", "Cost", cell=_cost, is_numeric=True),
        Column("feedback", "Feedback", cell=_feedback, is_numeric=True),
        Column("first", "First request", cell=lambda row: moment(row["started_at"]), is_default=False),
    ]


def _table(visit: Visit, page: SessionPage) -> Table:
    query = visit.request.GET
    return Table(
        caption="Sessions, the latest active first",
        columns=session_columns(visit),
        rows=page.results,
        empty=_empty(query),
        query=query,
        next_url=page_link(query, cursor=page.next_cursor, peek="") if page.next_cursor else "",
        previous_url=page_link(query, cursor=page.previous_cursor, peek="") if page.previous_cursor else "",
        key=lambda row: page_link(query, peek=row["session_id"]),
        is_current=lambda row: row["session_id"] == query.get(PEEK),
        has_chooser=True,
    )


def _empty(query: QueryDict) -> Empty:
    if any(query.get(item.name) for item in _FIELDS):
        cleared = page_link(query, **{item.name: "" for item in _FIELDS}, cursor="")
        return Empty("No session of this range matches these filters.", cleared, "Clear the filters")
    longer = page_link(query, range="30d", start="", end="", cursor="")
    return Empty("No request in this range named a session by x-svc-session-id.", longer, "Look at the last 30 days")


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
