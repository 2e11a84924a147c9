from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from analytics.conversation.identity import SeenTurns
from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.queries.bodies import get_bodies
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.session_cursors import WholeSessionFilter, count_whole_sessions, list_sessions_after
from analytics.queries.session_filters import SessionFilter
from analytics.queries.session_requests import list_requests_after, list_session_requests
from analytics.queries.session_sorting import LATEST, SessionCursor
from analytics.queries.sessions import SessionSummary, get_session, list_sessions
from analytics.queries.telemetry import session_logs, session_spans
from analytics.queries.visible import both_visible
from analytics.scores import selectors
from analytics.wire.conversations import SessionTranscript, TextBounds, transcript_entry
from analytics.wire.feedback import FeedbackEntry, feedback_entries
from analytics.wire.requests import request_entry
from analytics.wire.sessions import SessionDetail, SessionEntry, SessionTokens
from analytics.wire.telemetry import LogRecord, SessionTelemetry, Span, log_entry, span_entry
from core.errors import NotFoundError
from core.wire.pagination import MAXIMUM_LIMIT, CursorListing, Listing, Page
from core.wire.shown import seen_as, shown


def sessions(project_id: UUID, filters: SessionFilter, page: Page) -> Listing:
    count, rows = list_sessions(project_id, filters, limit=page.limit, offset=page.offset)
    return Listing(count, _entries(project_id, rows))


def _entries(project_id: UUID, rows: Sequence[SessionSummary]) -> list[dict[str, Any]]:
    scores = selectors.feedback_scores(project_id, [row.session_id for row in rows])
    return [shown(seen_as(SessionEntry, row, feedback_score=scores.get(row.session_id))) for row in rows]


@dataclass(frozen=True, slots=True)
class SessionPage:
    results: Sequence[Mapping[str, Any]]
    next_cursor: str
    previous_cursor: str


def session_page(
    project_id: UUID,
    filters: WholeSessionFilter,
    *,
    sort: str = LATEST,
    after: SessionCursor | None = None,
    limit: int,
) -> SessionPage:
    """The sessions after the cursor, or before one that leads back."""
    rows, values = list_sessions_after(project_id, filters, sort=sort, after=after, limit=limit + 1)
    is_back = after is not None and after.is_back
    if is_back and len(rows) <= limit:
        # What is left before the cursor is the beginning of the list, whose page is a full one.
        return session_page(project_id, filters, sort=sort, limit=limit)
    found = rows[-limit:] if is_back else rows[:limit]
    has_next, has_previous = is_back or len(rows) > limit, after is not None and bool(found)

    def place(row: SessionSummary, *, is_back: bool) -> str:
        return str(SessionCursor(values[row.session_hash], row.session_hash, is_back, sort))

    return SessionPage(
        _entries(project_id, found),
        place(found[-1], is_back=False) if has_next else "",
        place(found[0], is_back=True) if has_previous else "",
    )


def session_listing(
    project_id: UUID,
    filters: WholeSessionFilter,
    *,
    sort: str = LATEST,
    after: SessionCursor | None = None,
    limit: int,
) -> CursorListing:
    """As `session_page`, with the number of all matching sessions."""
    page = session_page(project_id, filters, sort=sort, after=after, limit=limit)
    return CursorListing(
        count_whole_sessions(project_id, filters),
        page.results,
        next=page.next_cursor or None,
        previous=page.previous_cursor or None,
    )


def session(project_id: UUID, session_id: str) -> dict[str, Any]:
    """One session with its feedback. Raises NotFoundError."""
    row = get_session(project_id, session_id)
    if row is None:
        raise no_session()
    found = seen_as(
        SessionDetail,
        row,
        feedback_score=selectors.feedback_scores(project_id, [session_id]).get(session_id),
        tokens=seen_as(SessionTokens, row),
        feedback=feedback(project_id, session_id),
    )
    return shown(found)


def feedback(project_id: UUID, session_id: str) -> list[FeedbackEntry]:
    """The latest feedback; the session need not have a request yet."""
    return feedback_entries(selectors.list_feedback(project_id, session_id)[:MAXIMUM_LIMIT])


def session_requests(project_id: UUID, session_id: str, page: Page) -> Listing:
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


DEFAULT_TRANSCRIPT_LIMIT = 25
MAX_TRANSCRIPT_LIMIT = 50
_API_BOUNDS = 20_000, 2_000_000


def transcript(
    project_id: UUID,
    session_id: str,
    after: RequestCursor | None = None,
    limit: int = DEFAULT_TRANSCRIPT_LIMIT,
    bounds: TextBounds | None = None,
) -> SessionTranscript:
    """Returns the requests of a session behind the cursor, each with its new turns. Raises NotFoundError.

    The turns before the cursor are known from the request that the cursor names: a client sends the conversation so
    far with every call.
    """
    rows = list_requests_after(project_id, session_id, after=after, limit=limit + 1)
    if rows is None:
        raise no_session()
    shown = rows[:limit]
    keys = [RequestCursor(row.ts, row.request_id) for row in shown]
    bodies = get_bodies(project_id, [after, *keys] if after else keys)
    seen = SeenTurns()
    before = bodies.get(after.request_id) if after else None
    if before:
        seen.add(read_request(before.request).turns, read_response(before.response))
    bounds = bounds or TextBounds(*_API_BOUNDS)
    return {
        "results": [transcript_entry(row, bodies.get(row.request_id), seen, bounds) for row in shown],
        "next_cursor": str(keys[-1]) if len(rows) > limit else None,
    }
