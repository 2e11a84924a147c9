"""Which users does a project have, and what did each of them do in a range of time?

The page's names first, from the few columns that order them, then everything else for those names alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.exact import PLANNED, USER_DAYS, same, totals, union


@dataclass(frozen=True)
class UserRow:
    """`sessions` counts different ones; times are of the first and the last request in the range."""

    user_id: str
    requests: int
    sessions: int
    errors: int
    cancelled: int
    unpriced: int
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: Decimal
    latency_sum_ms: int
    models: list[str]
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class Users:
    """`count` users in all, and one page of them. `unnamed` is what was asked without the name of a user."""

    count: int
    page: Sequence[UserRow]
    unnamed: UserRow | None


@dataclass(frozen=True)
class _Name:
    user_id: str
    users: int


@dataclass(frozen=True)
class _Count:
    users: int


_KEYS = {"user_id": same("t.user_id")}
_SUMS = (
    "requests", "errors", "cancelled", "unpriced", "prompt_tokens", "completion_tokens", "cache_read_tokens",
    "cache_write_tokens", "cost_usd", "latency_sum_ms", "models", "first_at", "last_at",
)  # fmt: skip


def list_users(project_id: UUID, start: datetime, end: datetime, *, limit: int, offset: int) -> Users:
    """Those who cost most first, then those who asked most, then by name."""
    source, params = union(
        [USER_DAYS], start, end, keys=_KEYS, figures=("cost_usd", "requests"), where="t.user_id != ''"
    )
    params |= {"project": project_id, "limit": limit, "offset": offset}
    order = "ORDER BY sum(f.cost_usd) DESC, sum(f.requests) DESC, f.user_id LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
    sql = f"SELECT f.user_id AS user_id, count() OVER () AS users FROM {source} AS f GROUP BY f.user_id {order}"  # noqa: S608 - fragments of this app
    names = client.query(sql, params, row=_Name, name="users.page", database_settings=PLANNED)
    rows = _rows(project_id, start, end, ["", *(name.user_id for name in names)])
    page = [rows[name.user_id] for name in names if name.user_id in rows]
    count = names[0].users if names else _count(project_id, start, end) if offset else 0
    return Users(count, page, rows.get(""))


def get_user(project_id: UUID, user_id: str, start: datetime, end: datetime) -> UserRow | None:
    """None without any request of the user in the range."""
    return _rows(project_id, start, end, [user_id]).get(user_id)


def _rows(project_id: UUID, start: datetime, end: datetime, names: Sequence[str]) -> dict[str, UserRow]:
    wanted = "t.user_id IN {names:Array(String)}"
    source, params = union([USER_DAYS], start, end, keys=_KEYS, figures=(*_SUMS, "session_set"), where=wanted)
    sessions = "uniqExactMerge(f.session_set) AS sessions"
    sql = f"SELECT f.user_id AS user_id, {totals(*_SUMS)}, {sessions} FROM {source} AS f GROUP BY f.user_id"  # noqa: S608 - as above
    values: dict[str, Any] = {**params, "project": project_id, "names": list(names)}
    rows = client.query(sql, values, row=UserRow, name="users.rows", database_settings=PLANNED)
    return {row.user_id: row for row in rows}


def _count(project_id: UUID, start: datetime, end: datetime) -> int:
    source, params = union([USER_DAYS], start, end, keys=_KEYS, where="t.user_id != ''")
    sql = f"SELECT count() AS users FROM (SELECT f.user_id FROM {source} AS f GROUP BY f.user_id)"  # noqa: S608 - as above
    values = {**params, "project": project_id}
    return client.query(sql, values, row=_Count, name="users.count", database_settings=PLANNED)[0].users
