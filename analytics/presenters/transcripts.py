"""Presents the conversation of a session, a page of requests at a time."""

from __future__ import annotations

from uuid import UUID

from analytics.conversation.identity import SeenTurns
from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.presenters.sessions import no_session
from analytics.queries.bodies import get_bodies
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.session_requests import list_requests_after
from analytics.wire.conversations import TextBounds
from analytics.wire.transcripts import SessionTranscript, transcript_entry

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
