"""Presents sessions, the requests in them, and their feedback, spans and logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from analytics.queries.session_cursors import (
    SessionCursor,
    WholeSessionFilter,
    count_whole_sessions,
    list_sessions_after,
)
from analytics.queries.session_filters import SessionFilter
from analytics.queries.session_requests import list_session_requests
from analytics.queries.sessions import get_session, list_sessions
from analytics.queries.telemetry import session_logs, session_spans
from analytics.queries.visible import both_visible
from analytics.scores import selectors
from analytics.wire.feedback import FeedbackEntry, feedback_entries
from analytics.wire.requests import request_entry
from analytics.wire.sessions import SessionDetail, SessionEntry, session_detail, session_entry
from analytics.wire.telemetry import LogRecord, SessionTelemetry, Span, log_entry, span_entry
from core.errors import NotFoundError
from core.wire.pagination import MAXIMUM_LIMIT, CursorListing, Listing, Page


def sessions(project_id: UUID, filters: SessionFilter, page: Page) -> Listing:
    count, rows = list_sessions(project_id, filters, limit=page.limit, offset=page.offset)
    scores = selectors.feedback_scores(project_id, [row.session_id for row in rows])
    return Listing(count, [session_entry(row, scores.get(row.session_id)) for row in rows])


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of a list that is read on from a cursor; the cursors of its neighbours are empty at the ends of the
    list."""

    results: Sequence[SessionEntry]
    next_cursor: str
    previous_cursor: str


def session_page(
    project_id: UUID, filters: WholeSessionFilter, *, after: SessionCursor | None, limit: int
) -> SessionPage:
    """Returns a page of sessions behind the cursor, or before one that leads back, the latest active first."""
    rows = list_sessions_after(project_id, filters, after=after, limit=limit + 1)
    is_back = after is not None and after.is_back
    if is_back and len(rows) <= limit:
        # What is left before the cursor is the beginning of the list, whose page is a full one.
        return session_page(project_id, filters, after=None, limit=limit)
    shown = rows[-limit:] if is_back else rows[:limit]
    scores = selectors.feedback_scores(project_id, [row.session_id for row in shown])
    entries = [session_entry(row, scores.get(row.session_id)) for row in shown]
    has_next, has_previous = is_back or len(rows) > limit, after is not None and bool(shown)
    return SessionPage(
        entries,
        str(SessionCursor(shown[-1].ended_at, shown[-1].session_hash)) if has_next else "",
        str(SessionCursor(shown[0].ended_at, shown[0].session_hash, is_back=True)) if has_previous else "",
    )


def session_listing(
    project_id: UUID, filters: WholeSessionFilter, *, after: SessionCursor | None, limit: int
) -> CursorListing:
    """Returns what `session_page` does, with the number of all sessions that match."""
    page = session_page(project_id, filters, after=after, limit=limit)
    return CursorListing(
        count_whole_sessions(project_id, filters),
        page.results,
        next=page.next_cursor or None,
        previous=page.previous_cursor or None,
    )


def session(project_id: UUID, session_id: str) -> SessionDetail:
    """Returns one session with its feedback. Raises NotFoundError."""
    row = get_session(project_id, session_id)
    if row is None:
        raise no_session()
    score = selectors.feedback_scores(project_id, [session_id]).get(session_id)
    return session_detail(row, score, feedback(project_id, session_id))


def feedback(project_id: UUID, session_id: str) -> list[FeedbackEntry]:
    """Returns the latest feedback on a session, which need not have any request yet."""
    return feedback_entries(selectors.list_feedback(project_id, session_id)[:MAXIMUM_LIMIT])


def session_requests(project_id: UUID, session_id: str, page: Page) -> Listing:
    """Lists the requests of one session. Raises NotFoundError."""
    found = list_session_requests(project_id, session_id, limit=page.limit, offset=page.offset)
    if found is None:
        raise no_session()
    count, rows = found
    return Listing(count, [request_entry(row) for row in rows])


def telemetry(project_id: UUID, session_id: str) -> SessionTelemetry:
    # Spans are two queries, which may run at once because the second function runs in this thread.
    found_logs, found_spans = both_visible(
        project_id, partial(logs, project_id, session_id), partial(spans, project_id, session_id)
    )
    return {"spans": found_spans, "logs": found_logs}


def spans(project_id: UUID, session_id: str) -> list[Span]:
    return [span_entry(row) for row in session_spans(project_id, session_id)]


def logs(project_id: UUID, session_id: str) -> list[LogRecord]:
    return [log_entry(row) for row in session_logs(project_id, session_id)]


def no_session() -> NotFoundError:
    return NotFoundError("There is no such session in this project.", code="session_not_found")
