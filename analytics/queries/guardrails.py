from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.rollup_ranges import GUARDRAIL_HOURS, PLANNED, Key, fresh_from, same
from analytics.queries.summed import Scope, Source
from analytics.queries.usage import BEGINNING, Interval

# The attribute of a request that holds its verdicts, a JSON array; `gateway.guardrails.verdicts` writes it.
_VERDICTS = "attributes['guardrails']"
_SHAPE = "'Array(Tuple(guardrail String, stage String, action String, detail String, score Nullable(Float64)))'"
_FOUND = f"t.{_VERDICTS} != ''"
_KEY = Key(
    "(toString(t.guardrail), toString(t.stage), toString(t.action))",
    f"arrayJoin(arrayDistinct(arrayMap(v -> (v.1, v.2, v.3), JSONExtract(t.{_VERDICTS}, {_SHAPE}))))",
)

# The actions that say that something was found; the others say that an answer was judged, or texts were marked.
_FINDINGS = ("blocked", "flagged", "masked")
_COUNTED = (*_FINDINGS, "changed", "passed", "skipped")


@dataclass(frozen=True)
class _VerdictCounts:
    guardrail: str
    stage: str
    found_count: int
    blocked_count: int
    flagged_count: int
    masked_count: int
    changed_count: int
    passed_count: int
    skipped_count: int


@dataclass(frozen=True)
class GuardrailFigures(_VerdictCounts):
    """The requests by action; `found_count` is the sum of those that were blocked, flagged or masked."""

    last_seen: datetime


@dataclass(frozen=True)
class GuardrailInterval(_VerdictCounts):
    """The requests by action; `found_count` is the sum of those that were blocked, flagged or masked."""

    start: datetime


@dataclass(frozen=True)
class GuardrailVerdictEntry:
    """One verdict of one request. The score is 1 where the guardrail is certain, and the detail null for a reader
    without content."""

    request_id: UUID
    created_at: datetime
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
    detail: str | None
    score: float


Counts = TypeVar("Counts", GuardrailFigures, GuardrailInterval)


_COUNTS = {
    "guardrail": "f.verdict.1",
    "stage": "f.verdict.2",
    "found_count": f"sumIf(f.requests, f.verdict.3 IN {_FINDINGS})",
    **{f"{action}_count": f"sumIf(f.requests, f.verdict.3 = '{action}')" for action in _COUNTED},
}


def count_findings(scope: Scope) -> list[GuardrailFigures]:
    return _counts(
        GuardrailFigures,
        scope.of(GUARDRAIL_HOURS, keys={"verdict": _KEY}, where_request=_FOUND),
        {**_COUNTS, "last_seen": "max(f.last_at)"},
        "guardrail, stage",
        "found_count DESC, guardrail, stage",
    )


def count_findings_by_interval(scope: Scope, interval: Interval) -> list[GuardrailInterval]:
    keys = {"verdict": _KEY, "start": same(BEGINNING[interval])}
    return _counts(
        GuardrailInterval,
        scope.of(GUARDRAIL_HOURS, keys=keys, where_request=_FOUND),
        {**_COUNTS, "start": "toDateTime64(f.start, 6, 'UTC')"},
        "guardrail, stage, start",
        "start DESC, guardrail, stage",
    )


def _counts(row: type[Counts], source: Source, columns: Mapping[str, str], grouped: str, order: str) -> list[Counts]:
    found, params = source(figures=("requests", "last_at"))
    selected = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    sql = f"SELECT {selected} FROM {found} AS f GROUP BY {grouped} ORDER BY {order}"
    return client.query(sql, params, row=row, name="guardrails.count", database_settings=PLANNED)


def list_verdicts(scope: Scope, *, guardrail: str = "", action: str = "", limit: int) -> list[GuardrailVerdictEntry]:
    """The newest verdicts of the range.

    The rollup gives the hours that hold enough of them; only those hours' requests are read, and the latest, which the
    rollup may not have yet.
    """
    conditions, params = _conditions(guardrail, action)
    params |= {"project": scope.project_id, "start": scope.start, "end": scope.end, "limit": limit}
    hours = {*_newest_hours(conditions, params), _hour(fresh_from()), _hour(datetime.now(UTC))}
    where = "".join(f" AND verdict.{place} = {{{name}:String}}" for place, name in conditions)
    sql = f"""
SELECT t.request_id AS request_id, t.ts AS created_at, t.session_id AS session_id, t.user_id AS user_id,
    t.provider AS provider, t.model AS model, t.outcome AS outcome, t.status_code AS status_code,
    t.error_code AS error_code, verdict.1 AS guardrail, verdict.2 AS stage, verdict.3 AS action,
    verdict.4 AS detail, ifNull(verdict.5, 1) AS score
FROM requests AS t ARRAY JOIN JSONExtract(t.{_VERDICTS}, {_SHAPE}) AS verdict
PREWHERE t.project_id = {{project:UUID}} AND t.ts >= {{start:DateTime64(6, 'UTC')}}
    AND t.ts <= {{end:DateTime64(6, 'UTC')}} AND toStartOfHour(t.ts, 'UTC') IN {{hours:Array(DateTime('UTC'))}}
    AND {_FOUND}
WHERE 1{where} ORDER BY created_at DESC, request_id DESC, guardrail, detail LIMIT {{limit:UInt64}}
"""
    return visible.query(sql, {**params, "hours": sorted(hours)}, row=GuardrailVerdictEntry, name="guardrails.verdicts")


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _conditions(guardrail: str, action: str) -> tuple[list[tuple[int, str]], dict[str, Any]]:
    given = {"guardrail": guardrail, "action": action}
    places = {"guardrail": 1, "action": 3}
    chosen = {name: value for name, value in given.items() if value}
    return [(places[name], name) for name in chosen], dict(chosen)


def _newest_hours(conditions: list[tuple[int, str]], params: dict[str, Any]) -> list[datetime]:
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
    return client.query(sql, params, row=datetime, name="guardrails.hours")
