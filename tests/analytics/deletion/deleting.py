"""Helpers of the tests of deletion: requests to delete, and readings of every answer and table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.deletion.services import finish_due
from analytics.errors import AnalyticsUnavailableError
from analytics.request_log.record import AttemptRecord, SpoolEntry
from core.models import Project
from tests.factories.analytics import make_entry

SECRET = "Ottilie of Weißgasse 5"
SESSION = 'tenant/42\'s "session" %_'


def entry(project: Project, minutes_ago: float, **values: Any) -> SpoolEntry:
    """Returns an entry whose content has the secret in it."""
    ts = int(soon(-minutes_ago).timestamp() * 1e6)
    body = json.dumps({"messages": [{"role": "user", "content": f"I am {SECRET}"}]}).encode()
    response = json.dumps({"choices": [{"message": {"content": f"Hello {SECRET}"}}]}).encode()
    attempts = (AttemptRecord("openai", "gpt-4o-mini", error=values.get("error_message", "")),)
    return make_entry(
        body,
        response,
        project_id=str(project.pk),
        ts=ts,
        attempts=attempts,
        attributes={"note": SECRET},
        **values,
    )


def soon(minutes: float) -> datetime:
    """Returns a time relative to now, and not to the time at which this module was loaded."""
    return datetime.now(UTC) + timedelta(minutes=minutes)


def erase(api: APIClient, path: str) -> None:
    """Deletes a session or request, and runs the background task once."""
    assert api.delete(path).status_code == 204
    finish_due()


def path_of(session: str) -> str:
    return f"/api/llm/sessions/{quote(session, safe='/')}"


def found_in_search(api: Any, limit: int = 20) -> int:
    body = {"project_id": api._credentials["HTTP_X_PROJECT_ID"], "query": "Weißgasse", "limit": limit}
    answer = api.post("/api/llm/search", body, format="json")
    assert answer.status_code == 200, answer.json()
    return len(answer.json()["results"])


def exported_lines(api: APIClient) -> list[dict[str, Any]]:
    answer: Any = api.get("/api/llm/requests/export", {"include_content": "true"})
    content = b"".join(answer.streaming_content if not answer.is_async else _collected(answer))
    return [json.loads(line) for line in content.splitlines()]


def _collected(answer: Any) -> Iterator[bytes]:
    async def collect() -> list[bytes]:
        return [part async for part in answer.streaming_content]

    yield from async_to_sync(collect)()


def totals(api: APIClient, project: Project) -> dict[str, Any]:
    """Returns the sums of the project's requests, by the rows, the rollups and the overview."""
    values = {"project": project.pk}
    where = "WHERE project_id = {project:UUID}"
    raw = client.execute(f"SELECT count(), sum(cost_usd), sum(prompt_tokens) FROM requests {where}", values)  # noqa: S608
    figures = {"requests": raw[0][0], "raw": raw}
    for table in ("requests_minute", "requests_hourly", "requests_daily", "users_daily"):
        figures[table] = client.execute(
            f"SELECT sum(requests), sum(cost_usd), sum(prompt_tokens), sum(latency_sum_ms) FROM {table} {where}",  # noqa: S608
            values,
        )
    overview = api.get("/api/llm/metrics/overview").json()
    figures["overview"] = {name: overview[name] for name in ("total_requests", "total_cost_usd", "error_rate")}
    return figures


def contents(project: Project) -> dict[str, list[tuple[Any, ...]]]:
    """Returns the project's rows of every table, with all readable columns."""
    columns = client.execute(
        "SELECT table, groupArray(name) FROM system.columns WHERE database = currentDatabase()"
        " AND type NOT LIKE 'AggregateFunction%' AND table IN (SELECT table FROM system.columns"
        " WHERE database = currentDatabase() AND name = 'project_id') AND table IN"
        " (SELECT name FROM system.tables WHERE engine LIKE '%MergeTree') GROUP BY table"
    )
    return {
        table: client.execute(
            f"SELECT {', '.join(names)} FROM {table} WHERE project_id = {{project:UUID}}",  # noqa: S608
            {"project": project.pk},
        )
        for table, names in columns
    }


def insert_spans(
    project: Project,
    *sessions: str,
    attributes: dict[str, str] | None = None,
    attribute: str = "gen_ai.session_id",
    trace: str = "t",
) -> None:
    """Inserts a span and a log record for each session, which the attribute names, into one trace."""
    for number, session in enumerate(sessions):
        values = {**(attributes or {}), attribute: session}
        time = soon(-1)
        columns = ("ProjectId", "Timestamp", "TraceId", "SpanId", "SpanName", "SpanAttributes")
        client.insert(
            "otel_traces",
            columns,
            [(project.pk, time, trace, str(number), "span", values)],
            token=str(uuid4()),
        )
        client.insert(
            "otel_logs",
            ("ProjectId", "Timestamp", "TraceId", "Body", "LogAttributes"),
            [(project.pk, time, trace, SECRET, values)],
            token=str(uuid4()),
        )


def break_off(patched: pytest.MonkeyPatch, table: str, *, after: bool) -> None:
    """Makes the first statement that changes `table` fail before it runs, or lose its answer."""
    execute, insert = client.execute, client.insert

    def guarded(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(first: str, *arguments: Any, **options: Any) -> Any:
            changes = first.startswith(("DELETE", "INSERT")) and f" {table} " in first
            hit = changes or first == table
            if hit and not after:
                raise AnalyticsUnavailableError("The analytics store does not answer.")
            answer = run(first, *arguments, **options)
            if hit:
                raise AnalyticsUnavailableError("The analytics store does not answer.")
            return answer

        return call

    patched.setattr(client, "execute", guarded(execute))
    patched.setattr(client, "insert", guarded(insert))


def assert_not_shown(api: APIClient, first_id: str) -> None:
    assert api.get(path_of(SESSION)).status_code == 404
    assert api.get(f"{path_of(SESSION)}/requests").status_code == 404
    assert api.get(f"/api/llm/requests/{first_id}").status_code == 404
    for query in ("", "?user_id=ottilie", "?name_pattern=%25t%25", f"?start_date={soon(-9999).date()}"):
        listed = api.get(f"/api/llm/sessions{query}").json()
        assert [row["session_id"] for row in listed["results"]] == ["other"], query
        assert listed["count"] == 1, query
    assert api.get("/api/llm/sessions?user_id=bruno").json()["results"] == []
    assert found_in_search(api) == 4
    exported = exported_lines(api)
    assert all(SESSION not in json.dumps(line) and line["request_id"] != first_id for line in exported)
    assert api.delete(path_of(SESSION)).status_code == 404
