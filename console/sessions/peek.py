"""The session that is shown beside the list: its figures, and its latest requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from analytics.models import SESSION_ID_CHARACTERS
from analytics.presenters import sessions
from analytics.presenters.requests import request_page
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_sorting import RequestSort
from analytics.wire.texts import request_without_texts, session_without_texts
from console.requests.columns import text_cell
from console.requests.detail.links import Fact
from console.requests.peek import PEEK
from console.sessions.facts import session_facts, session_tiles
from core.errors import NotFoundError
from core.ui.pages import Visit
from core.ui.panels import Panel

_LATEST = 8


def peek_panels(visit: Visit) -> Sequence[Panel]:
    """Returns the panel of the session that the address names, if it names one."""
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
    shown: Any = found if visit.sees_content else session_without_texts(found)
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
