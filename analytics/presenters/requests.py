from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.parameters.requests import encode_cursor
from analytics.presenters.metrics import interval_of
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_histogram import RequestHistogram, count_by_interval
from analytics.queries.request_pages import list_page
from analytics.queries.request_sorting import Position, RequestSort, position_of
from analytics.queries.requests import RequestDetailRow, get_payload, get_request, list_requests
from analytics.queries.search import SearchFilter, search
from analytics.queries.usage import Interval
from analytics.scores.selectors import list_feedback_of_request, list_scores_of
from analytics.wire.conversations import RequestConversation, TextBounds, request_conversation
from analytics.wire.feedback import FeedbackEntry, ScoreEntry, feedback_entries, score_entries
from analytics.wire.requests import RequestDetail, request_detail, request_entry
from analytics.wire.search import LookupResults, SearchResults, lookup_results, search_results
from core.errors import NotFoundError, ValidationError
from core.lookup.registry import Kind, look_up
from core.roles import Right
from core.wire.pagination import CursorListing, Listing, Page

# A request shows this many of its scores, and as much feedback; `scores/request/` and the session's feedback list all.
_MAX_SCORES = 100
_CONVERSATION_BOUNDS = 200_000, 2_000_000
MAX_INTERVALS = 2_000


def requests(project_id: UUID, filters: RequestFilter, page: Page, *, oldest_first: bool = False) -> Listing:
    count, rows = list_requests(project_id, filters, limit=page.limit, offset=page.offset, oldest_first=oldest_first)
    return Listing(count, [request_entry(row) for row in rows])


def request_page(
    project_id: UUID, filters: RequestFilter, sort: RequestSort, limit: int, position: Position | None = None
) -> CursorListing:
    count, page = list_page(project_id, filters, sort, limit=limit, position=position)
    rows = page.rows
    return CursorListing(
        count,
        [request_entry(row) for row in rows],
        next=encode_cursor(sort, position_of(rows[-1], sort)) if rows and page.after else None,
        previous=encode_cursor(sort, position_of(rows[0], sort, backward=True)) if rows and page.before else None,
    )


def request(project_id: UUID, request_id: UUID) -> RequestDetail:
    row = find_request(project_id, request_id)
    return request_detail(row, get_payload(project_id, row), _scores(project_id, row), _feedback(project_id, row))


def request_without_bodies(project_id: UUID, row: RequestDetailRow) -> RequestDetail:
    """As `request`, without bodies, which may be megabytes that a page shows as a conversation."""
    return request_detail(row, None, _scores(project_id, row), _feedback(project_id, row))


def conversation(project_id: UUID, request_id: UUID) -> RequestConversation:
    """Returns the conversation of a request and its answer; long texts are cut. Raises NotFoundError."""
    payload = get_payload(project_id, find_request(project_id, request_id))
    return request_conversation(payload, TextBounds(*_CONVERSATION_BOUNDS))


def find_request(project_id: UUID, request_id: UUID) -> RequestDetailRow:
    row = get_request(project_id, request_id)
    if row is None:
        raise no_request()
    return row


def _scores(project_id: UUID, row: RequestDetailRow) -> list[ScoreEntry]:
    return score_entries(list_scores_of(project_id, str(row.request_id))[:_MAX_SCORES])


def _feedback(project_id: UUID, row: RequestDetailRow) -> list[FeedbackEntry]:
    return feedback_entries(list_feedback_of_request(project_id, row.session_id, row.request_id)[:_MAX_SCORES])


def no_request() -> NotFoundError:
    return NotFoundError("There is no such request in this project.", code="request_not_found")


def histogram(
    project_id: UUID, filters: RequestFilter, time_range: TimeRange, interval: Interval | None = None
) -> RequestHistogram:
    """Without `interval` the length of the range decides. Raises ValidationError for more than MAX_INTERVALS
    intervals.
    """
    chosen = interval or interval_of(time_range)
    start, end = time_range.start, time_range.end
    if (end - start) // chosen.length >= MAX_INTERVALS:
        field = "interval" if interval else "start_date"
        problem = f"The range has more than {MAX_INTERVALS:,} intervals of a {chosen}."
        raise ValidationError.of_field(field, problem)
    return count_by_interval(project_id, filters, start, end, chosen)


def search_texts(project_id: UUID, filters: SearchFilter, limit: int) -> SearchResults:
    """Returns the newest requests in whose texts all terms occur, with the places of the terms."""
    return search_results(search(project_id, filters, limit=limit))


def lookup(
    project_id: UUID, text: str, rights: Collection[Right], kinds: Collection[Kind] = tuple(Kind)
) -> LookupResults:
    """Returns the requests, sessions, users, keys, prompts and rollouts of this id or name; blanks around it do not
    count. Records of other `kinds`, and those for which there is no right among `rights`, are left out."""
    text = text.strip()
    return lookup_results(look_up(project_id, text, rights, kinds) if text else [])
