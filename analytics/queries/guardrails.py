"""Counts the requests in which guardrails found something, by guardrail, stage and action, and finds the latest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.rollup_ranges import GUARDRAIL_HOURS, PLANNED, Key, same, totals, union
from analytics.queries.usage import Interval

# The attribute of a request that holds its verdicts, a JSON array; `gateway.guardrails.verdicts` writes it.
_VERDICTS = "attributes['guardrails']"
_SHAPE = "'Array(Tuple(guardrail String, stage String, action String, detail String, score Nullable(Float64)))'"
_FOUND = f"t.{_VERDICTS} != ''"
_KEY = Key(
    "(toString(t.guardrail), toString(t.stage), toString(t.action))",
    f"arrayJoin(arrayDistinct(arrayMap(v -> (v.1, v.2, v.3), JSONExtract(t.{_VERDICTS}, {_SHAPE}))))",
)
_BEGINNING = {
    Interval.HOUR: "toStartOfHour({time}, 'UTC')",
    Interval.DAY: "toStartOfDay({time}, 'UTC')",
}
_NO_TIME = "toDateTime('1970-01-01 00:00:00', 'UTC')"


@dataclass(frozen=True)
class VerdictCountRow:
    """The requests with one verdict. `start` is that of the interval, where the question names one."""

    guardrail: str
    stage: str
    action: str
    start: datetime
    requests: int
    last_at: datetime


@dataclass(frozen=True)
class VerdictRow:
    """One verdict of one request. `score` is None where the guardrail is certain."""

    request_id: UUID
    ts: datetime
    session_id: str
    user_id: str
    provider: str
    model: str
    outcome: str
    status_code: int
    error_code: str
    guardrail: str
    stage: str
    action: str
    detail: str
    score: float | None


@dataclass(frozen=True)
class _Hour:
    hour: datetime


def count_verdicts(
    project_id: UUID, start: datetime, end: datetime, interval: Interval | None = None
) -> list[VerdictCountRow]:
    """Returns the requests by guardrail, stage and action, and by hour or day with an `interval`, the latest first."""
    beginning = _BEGINNING[interval] if interval else _NO_TIME
    keys = {"verdict": _KEY, "start": same(beginning)}
    source, params = union(
        [GUARDRAIL_HOURS], start, end, keys=keys, figures=("requests", "last_at"), where_request=_FOUND
    )
    sql = (
        "SELECT f.verdict.1 AS guardrail, f.verdict.2 AS stage, f.verdict.3 AS action,"
        f" toDateTime64(f.start, 6, 'UTC') AS start, {totals('requests', 'last_at')}"
        f" FROM {source} AS f GROUP BY f.verdict, f.start ORDER BY start DESC, guardrail, stage, action"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=VerdictCountRow, name="guardrails.count", database_settings=PLANNED)


def list_verdicts(
    project_id: UUID, start: datetime, end: datetime, *, guardrail: str = "", action: str = "", limit: int
) -> list[VerdictRow]:
    """Returns the newest verdicts of the range, at most `limit`.

    The rollup names the hours that hold so many of them, so that no other hour's requests are read.
    """
    conditions, params = _conditions(guardrail, action)
    params |= {"project": project_id, "start": start, "end": end, "limit": limit}
    hours = _newest_hours(conditions, params)
    if not hours:
        return []
    where = "".join(f" AND verdict.{place} = {{{name}:String}}" for place, name in conditions)
    sql = f"""
SELECT t.request_id AS request_id, t.ts AS ts, t.session_id AS session_id, t.user_id AS user_id,
    t.provider AS provider, t.model AS model, t.outcome AS outcome, t.status_code AS status_code,
    t.error_code AS error_code, verdict.1 AS guardrail, verdict.2 AS stage, verdict.3 AS action,
    verdict.4 AS detail, verdict.5 AS score
FROM requests AS t ARRAY JOIN JSONExtract(t.{_VERDICTS}, {_SHAPE}) AS verdict
PREWHERE t.project_id = {{project:UUID}} AND t.ts >= {{start:DateTime64(6, 'UTC')}}
    AND t.ts <= {{end:DateTime64(6, 'UTC')}} AND toStartOfHour(t.ts, 'UTC') IN {{hours:Array(DateTime('UTC'))}}
    AND {_FOUND}
WHERE 1{where} ORDER BY ts DESC, request_id DESC, guardrail, detail LIMIT {{limit:UInt64}}
"""
    return visible.query(sql, {**params, "hours": hours}, row=VerdictRow, name="guardrails.verdicts")


def _conditions(guardrail: str, action: str) -> tuple[list[tuple[int, str]], dict[str, Any]]:
    """Returns the given conditions as the place in a verdict's tuple and the name of the parameter, and the values."""
    given = {"guardrail": guardrail, "action": action}
    places = {"guardrail": 1, "action": 3}
    chosen = {name: value for name, value in given.items() if value}
    return [(places[name], name) for name in chosen], dict(chosen)


def _newest_hours(conditions: list[tuple[int, str]], params: dict[str, Any]) -> list[datetime]:
    """Returns the newest hours that together hold at least `limit` verdicts, or all of the range that have any."""
    where = "".join(f" AND g.{name} = {{{name}:String}}" for _, name in conditions)
    sql = f"""
SELECT toDateTime64(hour, 0, 'UTC') AS hour FROM (
    SELECT g.hour AS hour, sum(g.requests) AS found, sum(found) OVER (ORDER BY hour DESC) AS newer
    FROM guardrails_hourly AS g
    WHERE g.project_id = {{project:UUID}} AND g.hour >= toStartOfHour({{start:DateTime64(6, 'UTC')}}, 'UTC')
        AND g.hour <= {{end:DateTime64(6, 'UTC')}}{where}
    GROUP BY hour
) WHERE newer - found < {{limit:UInt64}} * 2 ORDER BY hour DESC LIMIT {{limit:UInt64}} + 2
"""
    return [row.hour for row in client.query(sql, params, row=_Hour, name="guardrails.hours")]
