"""Sessions of random requests equal the same sums in plain Python."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.queries import session_pages, session_requests
from analytics.queries.session_filters import SessionFilter
from analytics.queries.session_requests import list_session_requests
from analytics.queries.sessions import SessionSummary, SessionSums, get_session, list_sessions
from analytics.request_log.record import Outcome, RequestRecord, SpoolEntry
from tests.factories.analytics import make_record, store
from tests.night import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The age of a range decides which query answers it.
FIRST_DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=40)
DAY = 86_400_000_000
SESSIONS = [
    *(f"chat-{number}" for number in range(12)),
    "a/b", "a_b", "a%b", "a\\b",
    "it's \"quoted\"", "grüße/東京 🚀", "two\nlines\tand tab", "x" * 1024, " ", "%", "_", "\\",
]  # fmt: skip
USERS = ["", "ann", "bob", "zoë", "o'neil\\", "%"]
OPERATIONS = ["chat", "messages", "embeddings"]
PATTERNS = [
    "%",
    "chat-%",
    "chat-1_",
    "%b",
    "a_b",
    "a\\_b",
    "a\\%b",
    "a\\\\b",
    '%"%',
    "%東%🚀",
    "%s\tand%",
    "x%x",
    "none",
    "\\%",
]

times = st.builds(
    lambda day, moment: day * DAY + moment,
    st.sampled_from([0, 0, 1, 2, 3, 9, 20, 21, 40]),
    st.one_of(st.integers(0, DAY - 1), st.sampled_from([0, 1, DAY - 1])),
)


@dataclass(frozen=True)
class ListingCall:
    filters: SessionFilter
    limit: int
    offset: int


@st.composite
def histories(draw: st.DrawFn) -> list[RequestRecord]:
    """Draws requests of one project at different microseconds."""
    project = str(uuid4())
    start = int((FIRST_DAY - EPOCH).total_seconds() * 1e6)
    return [
        make_record(
            project_id=project,
            ts=start + moment,
            session_id=draw(st.sampled_from(["", *SESSIONS])),
            user_id=draw(st.sampled_from(USERS)),
            operation=draw(st.sampled_from(OPERATIONS)),
            model=draw(st.sampled_from(["", "m1", "m2", "m3"])),
            provider=draw(st.sampled_from(["", "openai", "google"])),
            outcome=draw(st.sampled_from(list(Outcome))),
            prompt_tokens=draw(st.integers(0, 2**32 - 1)),
            completion_tokens=draw(st.integers(0, 9)),
            cache_read_tokens=draw(st.integers(0, 9)),
            cache_write_tokens=draw(st.integers(0, 9)),
            cost_known=draw(st.booleans()),
            cost_usd=str(draw(st.decimals(0, 90_000_000, places=10))),
            latency_ms=draw(st.integers(0, 10_000)),
        )
        for moment in draw(st.lists(times, min_size=1, max_size=60, unique=True))
    ]


@st.composite
def listings(draw: st.DrawFn, records: list[RequestRecord]) -> ListingCall:
    """Draws a listing, whose range begins and ends at, before and after requests."""
    moments = st.builds(
        lambda record, beside: _time(record) + timedelta(microseconds=beside),
        st.sampled_from(records),
        st.sampled_from([-DAY, -3_600_000_000, -1, 0, 1, 3_600_000_000, DAY]),
    )
    filters = SessionFilter(
        user_id=draw(st.sampled_from(["", "", *USERS, "nobody"])),
        operation=draw(st.sampled_from(["", "", "", *OPERATIONS])),
        name_pattern=draw(st.sampled_from(["", "", *PATTERNS])),
        start=draw(st.none() | moments),
        end=draw(st.none() | moments),
    )
    if filters.start and filters.end and filters.start > filters.end:
        filters = replace(filters, start=filters.end, end=filters.start)
    return ListingCall(filters, draw(st.sampled_from([1, 3, 20])), draw(st.sampled_from([0, 0, 1, 5, 2**62])))


@given(data=st.data())
@settings(max_examples=examples(5, 15), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize(("shallow", "rows_of_set"), [(0, 1), (session_pages._SHALLOW, session_pages._ROWS_OF_SET)])
def test_sessions__random_requests_and_filters__equal_plain_python(
    data: st.DataObject, monkeypatch: pytest.MonkeyPatch, shallow: int, rows_of_set: int
) -> None:
    monkeypatch.setattr(session_pages, "_SHALLOW", shallow)
    monkeypatch.setattr(session_pages, "_ROWS_OF_SET", rows_of_set)
    records = data.draw(histories())
    project = UUID(records[0].project_id)
    _store(records)
    sessions = _sessions(records)

    for _ in range(12):
        listing = data.draw(listings(records))
        expected = [row for row in sessions if _matches(listing.filters, row, records)]
        count, rows = list_sessions(project, listing.filters, limit=listing.limit, offset=listing.offset)
        assert count == len(expected), listing
        page = expected[listing.offset : listing.offset + listing.limit]
        assert [_comparable(row) for row in rows] == [_summary(row) for row in page], listing

    for row in sessions:
        found = get_session(project, str(row["session_id"]))
        assert found is not None
        assert _comparable(found) == row


@given(data=st.data())
@settings(max_examples=examples(5, 12), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("shallow", [0, session_requests._SHALLOW])
def test_session_requests__random_requests_and_pages__in_the_order_they_were_made(
    data: st.DataObject, monkeypatch: pytest.MonkeyPatch, shallow: int
) -> None:
    monkeypatch.setattr(session_requests, "_SHALLOW", shallow)
    records = data.draw(histories())
    project = UUID(records[0].project_id)
    _store(records)

    for session_id in {record.session_id for record in records} - {""}:
        expected = [record.request_id for record in _in_order(records) if record.session_id == session_id]
        for _ in range(3):
            limit, offset = data.draw(st.sampled_from([1, 2, 5, 20])), data.draw(st.integers(0, len(expected) + 1))
            found = list_session_requests(project, session_id, limit=limit, offset=offset)
            assert found is not None
            assert found[0] == len(expected)
            assert [str(row.request_id) for row in found[1]] == expected[offset : offset + limit]


def _store(records: list[RequestRecord]) -> None:
    """The requests are stored in several inserts, so that rows of one session and day are in parts that may be
    unmerged."""
    for part in range(3):
        with tempfile.TemporaryDirectory() as directory:
            store(Path(directory), *(SpoolEntry(record) for record in records[part::3]))


def _in_order(records: Iterable[RequestRecord]) -> list[RequestRecord]:
    return sorted(records, key=lambda record: record.ts)


def _time(record: RequestRecord) -> datetime:
    return EPOCH + timedelta(microseconds=record.ts)


def _sessions(records: list[RequestRecord]) -> list[dict[str, object]]:
    """Returns the expected fields of each SessionRow, the latest active first."""
    grouped = defaultdict(list)
    for record in _in_order(records):
        grouped[record.session_id].append(record)
    grouped.pop("", None)
    rows = sorted(grouped.items(), key=lambda item: item[1][-1].ts, reverse=True)
    return [_row(session_id, members) for session_id, members in rows]


def _row(session_id: str, members: list[RequestRecord]) -> dict[str, object]:
    users = sorted({record.user_id for record in members} - {""})
    started_at, ended_at = _time(members[0]), _time(members[-1])
    return {
        "session_id": session_id,
        "user_id": users[0] if users else "",
        "users": users,
        "started_at": started_at,
        "ended_at": ended_at,
        "duration_seconds": (ended_at - started_at).total_seconds(),
        "request_count": len(members),
        "error_count": sum(record.outcome in (Outcome.ERROR, Outcome.INTERRUPTED) for record in members),
        "cancelled_count": sum(record.outcome == Outcome.CANCELLED for record in members),
        "unpriced_request_count": sum(not record.cost_known for record in members),
        **{
            name: sum(getattr(record, name) for record in members)
            for name in ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
        },
        "total_tokens": sum(record.prompt_tokens + record.completion_tokens for record in members),
        "total_cost_usd": sum(Decimal(record.cost_usd) for record in members),
        "average_latency_ms": sum(record.latency_ms for record in members) / len(members),
        "models_used": sorted({record.model for record in members} - {""}),
        "providers_used": sorted({record.provider for record in members} - {""}),
        "operations_used": sorted({record.operation for record in members}),
    }


def _comparable(row: SessionSums) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__ if name != "session_hash"}


def _summary(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name in SessionSummary.__dataclass_fields__}


def _matches(filters: SessionFilter, row: dict[str, object], records: list[RequestRecord]) -> bool:
    session_id = str(row["session_id"])
    members = [record for record in records if record.session_id == session_id]
    users = {record.user_id for record in members}
    moments = [_time(record) for record in members]
    return (
        (not filters.user_id or filters.user_id in users)
        and (not filters.operation or filters.operation in {record.operation for record in members})
        and (not filters.name_pattern or _like(filters.name_pattern, session_id))
        and any(
            (not filters.start or moment >= filters.start) and (not filters.end or moment <= filters.end)
            for moment in moments
        )
    )


def _like(pattern: str, text: str) -> bool:
    special = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\[%_\\]|.", pattern, flags=re.DOTALL)
    expression = "".join(special.get(piece, re.escape(piece[-1])) for piece in pieces)
    return re.fullmatch(expression, text, flags=re.DOTALL) is not None
