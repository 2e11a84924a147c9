"""Counts the values of the columns that lists of requests are filtered by.

The rollup of kinds has most of them, and that of users the users; they answer as long as the filter is one that they
know. Otherwise the newest requests that match are counted, up to MAX_COUNTED.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.parallel import both
from analytics.queries.request_days import KIND_DAYS, KIND_FIELDS
from analytics.queries.request_filters import Conditions, RequestFilter, conditions_of
from analytics.queries.rollup_ranges import PLANNED, USER_DAYS, USER_HOURS, Key, clamp, same, union

MAX_VALUES: Final = 10
MAX_COUNTED: Final = 20_000

# The counted columns by the parameter of the list that filters by them; their values as texts, empty for none.
_KINDS: Mapping[str, str] = {
    "outcome": "toString(t.outcome)",
    "provider": "toString(t.provider)",
    "model": "toString(t.model)",
    "error_code": "toString(t.error_code)",
    "source": "toString(t.source)",
    "operation": "if(t.operation = '', 'chat', toString(t.operation))",
    "prompt_config_id": "if(t.prompt_config_id = toUUID('00000000-0000-0000-0000-000000000000'), '',"
    " toString(t.prompt_config_id))",
}
_USERS: Mapping[str, str] = {"user_id": "t.user_id"}
FACETS: Final = ("outcome", "provider", "model", "error_code", "user_id", "source", "operation", "prompt_config_id")

_BEGINNING, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class FacetValueRow:
    value: str
    requests: int


@dataclass(frozen=True)
class Facet:
    """The commonest values of one column, and how many requests have another one. Requests older than `counted_since`
    were not counted; None when all were."""

    name: str
    values: Sequence[FacetValueRow]
    other: int
    counted_since: datetime | None


@dataclass(frozen=True)
class _Row:
    name: str
    value: str
    requests: int
    # The sums over all values of the column: of those that are not empty, and of all, with the time of the oldest.
    named: int
    counted: int
    since: datetime


def list_facets(project_id: UUID, filters: RequestFilter) -> Sequence[Facet]:
    """Returns the facets of the requests that match, in the order of FACETS."""
    given = conditions_of(filters)
    fields = given.conditions.keys() - {"start", "end"}

    def kinds() -> Sequence[Facet]:
        if fields <= KIND_FIELDS:
            return _of_rollups(project_id, filters, given, _KINDS, (KIND_DAYS,))
        return _of_newest(project_id, given, _KINDS)

    def users() -> Sequence[Facet]:
        if fields <= {"user_id", "operation"}:
            return _of_rollups(project_id, filters, given, _USERS, (USER_DAYS, USER_HOURS))
        return _of_newest(project_id, given, _USERS)

    found = {facet.name: facet for part in both(kinds, users) for facet in part}
    return [found.get(name) or Facet(name, [], 0, None) for name in FACETS]


def _of_rollups(
    project_id: UUID, filters: RequestFilter, given: Conditions, columns: Mapping[str, str], rollups: Sequence[Any]
) -> Sequence[Facet]:
    where = " AND ".join(["1", *(text for name, text in given.conditions.items() if name not in ("start", "end"))])
    keys: dict[str, Key] = {f"{name}_value": same(expression) for name, expression in columns.items()}
    start, end = clamp(filters.start or _BEGINNING), clamp(filters.end or _END)
    source, times = union(rollups, start, end, keys=keys, figures=["requests"], where=where)
    values = ", ".join(f"f.{name}_value AS {name}_value" for name in columns)
    counted = f"SELECT {values}, f.requests AS requests, toDateTime64(0, 6, 'UTC') AS ts FROM {source} AS f"
    return _facets(project_id, counted, {**given.values, **times}, columns, limited=False)


def _of_newest(project_id: UUID, given: Conditions, columns: Mapping[str, str]) -> Sequence[Facet]:
    where = " AND ".join(["t.project_id = {project:UUID}", *given.conditions.values()])
    selected = ", ".join(f"{expression} AS {name}_value" for name, expression in columns.items())
    counted = (
        f"SELECT {selected}, toUInt64(1) AS requests, t.ts AS ts FROM requests AS t PREWHERE {where}"
        f" ORDER BY t.ts DESC LIMIT {MAX_COUNTED}"
    )
    return _facets(project_id, counted, given.values, columns, limited=True)


def _facets(
    project_id: UUID, counted: str, params: Mapping[str, Any], columns: Mapping[str, str], *, limited: bool
) -> Sequence[Facet]:
    """Returns the facets of the rows of `counted`, which has the values, `requests` and `ts`."""
    values = ", ".join(f"{name}_value" for name in columns)
    kinds = f"SELECT {values}, sum(requests) AS n, min(ts) AS first FROM ({counted}) GROUP BY {values}"
    names = ", ".join(f"'{name}'" for name in columns)
    sql = f"""
        SELECT name, value, requests, named, counted, since FROM (
            SELECT name, value, sum(n) AS requests,
                sum(if(value = '', 0, requests)) OVER (PARTITION BY name) AS named,
                sum(requests) OVER (PARTITION BY name) AS counted,
                min(min(first)) OVER (PARTITION BY name) AS since
            FROM ({kinds}) ARRAY JOIN [{names}] AS name, [{values}] AS value
            GROUP BY name, value
        ) WHERE value != '' ORDER BY name, requests DESC, value LIMIT {MAX_VALUES} BY name
    """
    found = client.query(
        sql, {**params, "project": project_id}, row=_Row, name="requests.facets", database_settings=PLANNED
    )
    rows: dict[str, list[_Row]] = {}
    for row in found:
        rows.setdefault(row.name, []).append(row)
    return [_facet(name, of_name, limited=limited) for name, of_name in rows.items()]


def _facet(name: str, rows: Sequence[_Row], *, limited: bool) -> Facet:
    values = [FacetValueRow(row.value, row.requests) for row in rows]
    other = rows[0].named - sum(row.requests for row in rows)
    return Facet(name, values, other, rows[0].since if limited and rows[0].counted >= MAX_COUNTED else None)
