from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.groups import Errors
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.rollup_ranges import ERROR_KIND_HOURS, PLANNED, same
from analytics.queries.summed import BEGINS, Scope, summed
from analytics.queries.usage import BEGINNING, Interval


@dataclass(frozen=True)
class _Group(Errors):
    model: str
    first_seen: datetime


@dataclass(frozen=True)
class ErrorGroup(_Group):
    sample_request_id: UUID | None
    counts: list[int]


@dataclass(frozen=True)
class ErrorGroupRow(_Group):
    """`kind` is the hash of the group's four texts; `groups` and `errors` count those of the whole range."""

    kind: int
    groups: int
    errors: int


@dataclass(frozen=True)
class ErrorIntervalRow:
    kind: int
    start: datetime
    request_count: int


@dataclass(frozen=True)
class ErrorSampleRow:
    kind: int
    request_id: UUID


@dataclass(frozen=True)
class _Totals:
    groups: int
    errors: int


EVERYTHING = RequestFilter()
FIELDS = ("error_code", "error_type", "provider", "model", "status_code", "operation")
"""The fields of a filter that groups of errors are told apart by."""

_TEXTS = {"provider": "provider", "model": "model", "type": "error_type", "code": "error_code"}
_KEYS = {name: same(f"toString(t.{column})") for name, column in _TEXTS.items()}
_KIND = f"cityHash64({', '.join(f'toString(t.{column})' for column in _TEXTS.values())})"
_FAILED = "t.outcome IN ('error', 'interrupted')"


def list_error_groups(
    scope: Scope, *, limit: int, offset: int, filters: RequestFilter = EVERYTHING
) -> tuple[_Totals, list[ErrorGroupRow]]:
    """The numbers of groups and errors, and one page of the groups: the most frequent first, then by names.

    Of `filters` only the fields in FIELDS may be set.
    """
    keys = {**_KEYS, "kind": same(_KIND), "status_code": same("t.status_code")}
    given = conditions_of(filters)
    where = " AND ".join(["1", *given.conditions.values()])
    source = scope.of(ERROR_KIND_HOURS, keys=keys, where=where, where_request=_FAILED)
    rows = summed(
        ErrorGroupRow,
        source,
        by=["kind", *_TEXTS],
        inner={"status_codes": "arraySort(groupUniqArray(f.status_code))"},
        also=["requests"],
        outer={
            "error_count": "requests",
            "percentage": "100 * requests / sum(requests) OVER ()",
            "groups": "count() OVER ()",
            "errors": "sum(requests) OVER ()",
        },
        tail=f"ORDER BY requests DESC, {', '.join(_TEXTS)} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}",
        values={**given.values, "limit": limit, "offset": offset},
        name="errors.groups",
    )
    if rows:
        return _Totals(rows[0].groups, rows[0].errors), rows
    counted = {"groups": "uniqExact(f.kind)"}
    [totals] = summed(
        _Totals,
        source,
        inner=counted,
        also=["requests"],
        outer={"errors": "requests"},
        values=given.values,
        name="errors.count",
    )
    return totals, []


def list_error_intervals(scope: Scope, interval: Interval, kinds: Sequence[int]) -> list[ErrorIntervalRow]:
    rollups = () if interval is Interval.MINUTE else (ERROR_KIND_HOURS,)
    keys, where = {"kind": same(_KIND), "start": same(BEGINNING[interval])}, f"{_KIND} IN {{kinds:Array(UInt64)}}"
    return summed(
        ErrorIntervalRow,
        scope.of(*rollups, keys=keys, where=where, where_request=_FAILED),
        by=["kind", "start"],
        outer=BEGINS,
        values={"kinds": list(kinds)},
        name="errors.intervals",
    )


def find_error_samples(project_id: UUID, groups: Sequence[ErrorGroupRow]) -> dict[int, UUID]:
    """By kind, the latest request of each group, if it is still stored.

    Looks the times up by the primary key of `requests`, so that few rows are read.
    """
    sql = (
        f"SELECT {_KIND} AS kind, any(t.request_id) AS request_id FROM requests AS t"
        " PREWHERE t.project_id = {project:UUID} AND t.ts IN {times:Array(DateTime64(6, 'UTC'))}"
        f" WHERE {_FAILED} GROUP BY kind"
    )
    params = {"project": project_id, "times": [group.last_seen for group in groups]}
    rows = visible.query(sql, params, row=ErrorSampleRow, name="errors.samples", database_settings=PLANNED)
    return {row.kind: row.request_id for row in rows}


@dataclass(frozen=True)
class _Refused:
    team_id: int
    code: str
    requests: int


_REFUSED = """
SELECT team_id, toString(error_code) AS code, count() AS requests
FROM requests
WHERE project_id = {project:UUID} AND ts >= {since:DateTime64(6, 'UTC')}
    AND team_id != 0 AND error_code IN {codes:Array(String)}
GROUP BY team_id, code
"""


def team_refusals(project_id: UUID, since: datetime, codes: Collection[str]) -> Mapping[int, Mapping[str, int]]:
    """Returns the number of requests since a time that ended with one of the error codes, by the id of the team and the
    code. Teams without any are left out."""
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    params = {"project": project_id, "since": since, "codes": sorted(codes)}
    for row in client.query(_REFUSED, params, row=_Refused, name="teams.refused"):
        found[row.team_id][row.code] = row.requests
    return found
