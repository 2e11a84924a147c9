"""The gateway's own spans, which are derived from its requests when a session is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.queries.traces import gateway_calls
from analytics.request_log.record import TELEMETRY, AttemptRecord, SpoolEntry
from analytics.shipper.loop import Shipper
from analytics.spool.writer import SpoolWriter
from analytics.telemetry.request_spans import request_spans
from core.models import Project
from tests.analytics.telemetry.sending import SESSION, Sender, span, telemetry_of
from tests.factories.analytics import make_entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("telemetry", "clickhouse")]

FAILED = AttemptRecord("groq", "llama", 503, "unavailable", 40, offset_us=150)
SERVED = AttemptRecord("openai", "gpt-4o-mini", 200, "", 100, 12, 5, "0.0000048000", offset_us=41_000)


def entry(project: Project, **values: Any) -> SpoolEntry:
    defaults: dict[str, Any] = {"session_id": SESSION, "attempts": (FAILED, SERVED)}
    return make_entry(project_id=str(project.pk), **{**defaults, **values})


def ship(spool: Path, *entries: SpoolEntry, with_spans: bool = True) -> None:
    writer = SpoolWriter(spool)
    for one in entries:
        writer.append(one)
    writer.close()
    shipper = Shipper(spool, with_spans=with_spans)
    try:
        shipper.drain()
    finally:
        shipper.close()


def store_as_before(entry: SpoolEntry) -> None:
    """Stores the spans of a request as the shippers of releases did that inserted them."""
    columns = (
        "ProjectId", "RecordId", "Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "SpanKind",
        "ServiceName", "Duration", "StatusCode", "StatusMessage", "SpanAttributes", "ScopeName",
    )  # fmt: skip
    rows = [
        (
            UUID(entry.record.project_id), int(row.span_id, 16), _nanoseconds(row.time), row.trace_id, row.span_id,
            row.parent_span_id, row.span_name, row.span_kind, row.service_name, row.duration_ns, row.status_code,
            row.status_message, row.attributes, "prompt_gateway",
        )
        for row in request_spans(entry.record)
    ]  # fmt: skip
    client.insert("otel_traces", columns, rows, token=f"before-{entry.record.request_id}")


def _nanoseconds(time: str) -> int:
    whole = datetime.fromisoformat(time[:19]).replace(tzinfo=UTC)
    return int(whole.timestamp()) * 1_000_000_000 + int(time[20:])


def rich(project: Project) -> SpoolEntry:
    """A request with everything that its spans show."""
    return entry(
        project, user_id="ottilie", finish_reason="stop", is_stream=True, ttft_ms=90, latency_ms=251,
        cache_status="miss", cache_read_tokens=3, cache_write_tokens=2, reasoning_tokens=1, prompt_name="support",
        prompt_version=4, rollout_id="0b0d1f36-3e8a-4f8e-9f5e-1d8f0e6a7c55", variant="target", trace_id="ab" * 16,
        parent_span_id="cd" * 8, status_code=502, error_code="provider_error",
    )  # fmt: skip


def test_spans__of_requests__belong_to_the_session_and_are_stored_nowhere(
    spool: Path, api: APIClient, project: Project
) -> None:
    made = entry(project)
    ship(spool, made, entry(project, ts=made.record.ts - 1_000_000))

    spans, logs = telemetry_of(api, project.pk)

    assert [span["span_kind"] for span in spans] == ["Server", "Client", "Client"] * 2
    assert [span["span_name"] for span in spans[:3]] == [
        "POST /api/gateway/v1/chat/completions", "chat llama", "chat gpt-4o-mini",
    ]  # fmt: skip
    assert {one["parent_span_id"] for one in spans[1:3]} == {spans[0]["span_id"]}
    assert logs == []
    assert client.execute("SELECT count() FROM otel_traces") == [(0,)]


@pytest.mark.parametrize("make", [rich, entry])
def test_spans__stored_by_a_release_before__the_same_and_once(
    spool: Path, api: APIClient, project: Project, make: Any
) -> None:
    made = make(project)
    ship(spool, made, with_spans=False)
    store_as_before(made)
    before, _ = telemetry_of(api, project.pk)

    client.execute("TRUNCATE TABLE otel_traces")
    client.execute("TRUNCATE TABLE otel_session_spans")
    client.execute("ALTER TABLE requests UPDATE spans_derived = 1 WHERE 1", settings={"mutations_sync": 1})
    derived, _ = telemetry_of(api, project.pk)

    assert len(before) == 3
    assert derived == before


def test_spans__batch_shipped_by_both_releases__no_span_twice(spool: Path, api: APIClient, project: Project) -> None:
    """A release that is rolled back sends the batch again: the store knows its rows, and takes its spans."""
    made = entry(project)
    ship(spool, made)
    store_as_before(made)

    spans, _ = telemetry_of(api, project.pk)

    assert len(spans) == len({one["span_id"] for one in spans}) == 3


def test_spans__of_gateway_and_application__in_one_order_up_to_the_limit(
    spool: Path, api: APIClient, project: Project, sender: Sender
) -> None:
    made = [entry(project) for _ in range(170)]
    ship(spool, *made)
    start = made[0].record.ts * 1000
    sender.traces(
        *(span(number, start_time_unix_nano=start + number, end_time_unix_nano=start + 9999) for number in (1, 2))
    )

    spans, _ = telemetry_of(api, project.pk)

    assert len(spans) == 500
    assert spans == sorted(spans, key=lambda one: (one["timestamp"], one["span_id"]))
    assert [one["span_name"] for one in spans[1:3]] == ["span 1", "span 2"]
    # The last attempts lie behind all requests, so that the first requests have theirs and the last ones do not.
    named = [one["span_kind"] for one in spans]
    assert named.count("Server") == 170


def test_spans__switched_off__none(spool: Path, api: APIClient, project: Project) -> None:
    ship(spool, entry(project), with_spans=False)

    assert telemetry_of(api, project.pk) == ([], [])


def test_spans__of_an_applications_own_call__only_those_that_it_sent(
    spool: Path, api: APIClient, project: Project
) -> None:
    ship(spool, entry(project, source=TELEMETRY))

    assert telemetry_of(api, project.pk) == ([], [])


def test_spans__retention_over__none(spool: Path, api: APIClient, project: Project, settings: Settings) -> None:
    settings.TELEMETRY_RETENTION_DAYS = 2
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    kept, expired = today - timedelta(days=1), today - timedelta(seconds=86_401)
    ship(spool, *(entry(project, ts=int(ts.timestamp()) * 1_000_000) for ts in (expired, kept)))

    spans, _ = telemetry_of(api, project.pk)

    assert len(spans) == 3
    assert spans[0]["timestamp"].startswith(f"{kept:%Y-%m-%d}T00:00:00")


def test_spans__attempts_of_another_writer__the_request_alone(spool: Path, api: APIClient, project: Project) -> None:
    ship(spool, entry(project))
    client.execute("ALTER TABLE requests UPDATE attempts = 'none' WHERE 1", settings={"mutations_sync": 1})

    spans, _ = telemetry_of(api, project.pk)

    assert [one["span_kind"] for one in spans] == ["Server"]


def test_spans__of_a_deleted_session__go_with_its_requests(spool: Path, api: APIClient, project: Project) -> None:
    ship(spool, entry(project))

    assert api.delete(f"/api/llm/sessions/{SESSION}").status_code == 204

    assert telemetry_of(api, project.pk) == ([], [])


def test_gateway_calls__of_traces__requests_by_their_own_id_or_the_clients_trace(spool: Path, project: Project) -> None:
    alone, traced = entry(project), entry(project, trace_id="ab" * 16)
    before = entry(project, trace_id="ef" * 16)
    ship(spool, alone, traced, entry(project), entry(project, trace_id="cd" * 16, source=TELEMETRY))
    store_as_before(before)
    traces = [UUID(alone.record.request_id).hex, "ab" * 16, "cd" * 16, "ef" * 16, UUID(traced.record.request_id).hex]

    found = {(row.trace_id, row.started_ns) for row in gateway_calls(project.pk, traces)}

    assert found == {
        (traces[0], alone.record.ts * 1000), (traces[1], traced.record.ts * 1000), (traces[3], before.record.ts * 1000)
    }  # fmt: skip
