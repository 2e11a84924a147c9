"""Lists of random requests over some days equal the same choice in plain Python."""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import list_requests
from analytics.request_log.record import Outcome, RequestRecord, SpoolEntry
from tests.factories.analytics import make_record, store
from tests.night import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=40)
DAY = 86_400_000_000
CHOICES: dict[str, list[object]] = {
    "user_id": ["", "ann", "%"],
    "outcome": list(Outcome),
    "status_code": [200, 429],
    "source": ["gateway", "playground"],
    "operation": ["chat", "messages", "embeddings"],
    "provider": ["", "openai"],
    "model": ["", "m1", "m2"],
    "requested_model": ["auto", "m1"],
    "error_type": ["", "api_error"],
    "error_code": ["", "timeout"],
    "prompt_version": [1, 2],
    "variant": ["", "target"],
}
times = st.builds(
    lambda day, moment: day * DAY + moment,
    st.sampled_from([0, 0, 1, 2, 9, 40]),
    st.one_of(st.integers(0, DAY - 1), st.sampled_from([0, 1, DAY - 1])),
)


@st.composite
def histories(draw: st.DrawFn) -> list[RequestRecord]:
    """Draws requests of one project at different microseconds, the newest first."""
    project, start = str(uuid4()), int((FIRST_DAY - EPOCH).total_seconds() * 1e6)
    moments = draw(st.lists(times, min_size=1, max_size=60, unique=True))
    return [
        make_record(
            project_id=project,
            ts=start + moment,
            latency_ms=draw(st.sampled_from([10, 2000])),
            **{name: draw(st.sampled_from(values)) for name, values in CHOICES.items()},
        )
        for moment in sorted(moments, reverse=True)
    ]


@st.composite
def filters(draw: st.DrawFn, records: list[RequestRecord]) -> RequestFilter:
    """Draws filters by one column or several, in a rollup or not, over ranges that begin and end beside requests."""
    moments = st.builds(
        lambda record, beside: _time(record) + timedelta(microseconds=beside),
        st.sampled_from(records),
        st.sampled_from([-DAY, -1, 0, 1, DAY]),
    )
    names = draw(st.lists(st.sampled_from(sorted(CHOICES)), max_size=2, unique=True))
    chosen = RequestFilter(
        **{name: draw(st.sampled_from(CHOICES[name])) for name in names},  # type: ignore[arg-type]  # by their names
        min_latency_ms=draw(st.sampled_from([None, None, None, 1000])),
        start=draw(st.none() | moments),
        end=draw(st.none() | moments),
    )
    if chosen.start and chosen.end and chosen.start > chosen.end:
        return replace(chosen, start=chosen.end, end=chosen.start)
    return chosen


@given(data=st.data())
@settings(max_examples=examples(5, 12), deadline=None, suppress_health_check=list(HealthCheck))
def test_requests__random_requests_filters_and_pages__equal_plain_python(data: st.DataObject) -> None:
    records = data.draw(histories())
    project = UUID(records[0].project_id)
    # The requests are stored in several inserts, so that rows of a day are in parts that may be unmerged.
    for part in range(3):
        with tempfile.TemporaryDirectory() as directory:
            store(Path(directory), *(SpoolEntry(record) for record in records[part::3]))

    for _ in range(12):
        chosen = data.draw(filters(records))
        limit, offset = data.draw(st.sampled_from([1, 3, 20])), data.draw(st.sampled_from([0, 0, 1, 5, 30, 2**62]))
        expected = [record.request_id for record in records if _matches(chosen, record)]
        for oldest_first in (False, True):
            count, rows = list_requests(project, chosen, limit=limit, offset=offset, oldest_first=oldest_first)
            in_order = expected[::-1] if oldest_first else expected
            assert count == len(expected), chosen
            assert [str(row.request_id) for row in rows] == in_order[offset : offset + limit], chosen


def _matches(chosen: RequestFilter, record: RequestRecord) -> bool:
    values = {field.name: value for field in fields(chosen) if (value := getattr(chosen, field.name)) not in ("", None)}
    return (
        all(getattr(record, name) == value for name, value in values.items() if name in CHOICES)
        and (not chosen.min_latency_ms or record.latency_ms >= chosen.min_latency_ms)
        and (not chosen.start or _time(record) >= chosen.start)
        and (not chosen.end or _time(record) <= chosen.end)
    )


def _time(record: RequestRecord) -> datetime:
    return EPOCH + timedelta(microseconds=record.ts)
