"""Runs the queries that show requests and sessions, without the sessions that are being deleted.

A deletion is stored in the SQL database and carried out within seconds. In between the session is hidden: each query
names the rows of each table to leave out. Sums of cost and tokens read all rows, by `analytics.clickhouse.client`: a
deletion never changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Context, ContextVar, copy_context
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.parallel import both
from analytics.scores import selectors

Row = TypeVar("Row")
First = TypeVar("First")
Second = TypeVar("Second")

_NONE: Mapping[str, str] = {}

_known: ContextVar[tuple[UUID, Mapping[str, str]] | None] = ContextVar("hidden_sessions", default=None)


def query(
    sql: str,
    params: Mapping[str, Any],
    *,
    row: type[Row],
    name: str,
    database_settings: Mapping[str, Any] | None = None,
) -> list[Row]:
    """As `client.query`, without sessions under deletion; the query has a parameter `project`."""
    settings = {**_hidden(params["project"]), **(database_settings or {})}
    return client.query(sql, params, row=row, name=name, database_settings=settings)


def both_visible(project_id: UUID, first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """As `both`, with the same hidden sessions for both functions, which must not use the SQL database themselves."""
    context = looked_up(project_id)
    return both(partial(context.copy().run, first), partial(context.run, second))


def looked_up(project_id: UUID) -> Context:
    """A context in which queries leave out sessions under deletion, for threads without an SQL connection."""
    context = copy_context()
    context.run(_known.set, (project_id, _hidden(project_id)))
    return context


def _hidden(project_id: UUID) -> Mapping[str, str]:
    """The settings that hide sessions. Nearly always there are none, which lets the store use its short cuts."""
    known = _known.get()
    if known and known[0] == project_id:
        return known[1]
    under_way = selectors.list_sessions_being_deleted(project_id)
    return {"additional_table_filters": _filters(under_way)} if under_way else _NONE


def _filters(sessions: Mapping[str, datetime]) -> str:
    """The setting's value, a map of table to condition. Ids are in hexadecimal, so that none needs escaping."""
    hashes = ", ".join(f"cityHash64(unhex('{session_id.encode().hex()}'))" for session_id in sessions)
    until = ", ".join(f"toInt64({_micros(moment)})" for moment in sessions.values())

    def later(time: str, session: str) -> str:
        """The condition that a row is newer than its session's deletion, and therefore visible."""
        return f"toUnixTimestamp64Micro({time}) > transform({session}, [{hashes}], [{until}], toInt64(-1))"

    seen = _seen(later)
    return "{" + ", ".join(f"'{table}': '{_quoted(condition)}'" for table, condition in seen.items()) + "}"


def _seen(later: Callable[[str, str], str]) -> Mapping[str, str]:
    request = later("ts", "cityHash64(session_id)")
    record = f"arrayAll(id -> {later('Timestamp', 'cityHash64(id)')}, TimelineSessionIds)"
    record_key = f"arrayAll(id -> {later('Timestamp', 'cityHash64(id)')}, SessionIds)"
    key = later("Timestamp", "cityHash64(SessionId)")
    return {
        "requests": request,
        "payloads": request,
        "session_days": later("started_at", "session_hash"),
        "user_sessions": later("toDateTime64(day, 6, 'UTC')", "session_hash"),
        "otel_traces": record,
        "otel_logs": record,
        "otel_session_spans": key,
        "otel_session_logs": key,
        "otel_session_traces": key,
        "otel_trace_spans": record_key,
        "otel_trace_logs": record_key,
    }


def _quoted(condition: str) -> str:
    return condition.replace("'", "\\'")


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
