"""Spans and logs of before migration 0047 are found by their traces, also when it is run again."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analytics.clickhouse import client, migrator
from analytics.queries.session_traces import session_trace_spans
from analytics.queries.telemetry import trace_logs, trace_spans

TRACE = "ab" * 16


@pytest.mark.django_db
def test_migrate__records_of_before__found_by_trace_and_session_once(
    empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project, now = uuid.uuid4(), datetime.now(UTC)
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "MIGRATIONS", tmp_path)
        assert migrator.migrate() == ["0046_schema"]
    spans = [(project, now, TRACE, str(number), {"session.id": "s"} if number == 2 else {}) for number in (1, 2)]
    client.insert("otel_traces", ("ProjectId", "Timestamp", "TraceId", "SpanId", "SpanAttributes"), spans, token="a")
    lines = [(project, now, TRACE, "line"), (project, now, "", "untraced")]
    client.insert("otel_logs", ("ProjectId", "Timestamp", "TraceId", "Body"), lines, token="b")

    migrator.migrate()
    client.execute("ALTER TABLE schema_migrations DELETE WHERE number = 47", settings={"mutations_sync": 1})
    assert "0047_traces" in migrator.migrate()

    assert [row.span_id for row in session_trace_spans(project, "s").spans] == ["1", "2"]
    assert [row.span_id for row in trace_spans(project, [TRACE])] == ["1", "2"]
    assert [row.body for row in trace_logs(project, [TRACE])] == ["line"]
    for table, rows in (("otel_trace_spans", 2), ("otel_trace_logs", 1), ("otel_session_traces", 1)):
        assert client.execute(f"SELECT count() FROM {table} FINAL") == [(rows,)]  # noqa: S608 - names of the test
