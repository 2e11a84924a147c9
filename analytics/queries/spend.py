"""Sums costs of a project, sessions, teams, API keys and users. `hasty` is that of `client.query`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeVar
from uuid import UUID

from analytics.clickhouse import client

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime(2299, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Spend:
    id: str
    cost_usd: Decimal


# The rollups may lack the requests of the last minute, and a request is written down when it ends. So hours come from
# them only when they have been over for longer than a request may take.
_LAG = timedelta(hours=1)

# Whole hours come from the rollup, the requests after the last of them from the rows.
_PROJECT = """
SELECT sum(cost_usd) AS cost_usd
FROM (
    SELECT sum(h.cost_usd) AS cost_usd FROM spend_hourly AS h
    WHERE h.project_id = {project:UUID} AND h.hour >= {start:DateTime('UTC')} AND h.hour < {whole:DateTime('UTC')}
    UNION ALL
    SELECT sum(toDecimal128(r.cost_usd, 10)) FROM requests AS r
    WHERE r.project_id = {project:UUID}
        AND r.ts >= {whole:DateTime('UTC')} AND r.ts < {until:DateTime64(6, 'UTC')}
    UNION ALL
    SELECT sum(toDecimal128(r.cost_usd, 10)) FROM requests AS r
    WHERE r.project_id = {project:UUID}
        AND r.ts > {beyond:DateTime64(6, 'UTC')} AND r.ts < {end:DateTime64(6, 'UTC')}
)
"""
# Each session is summed up to its own time and after another one, in microseconds.
_SESSIONS = """
SELECT session_id AS id, sum(toDecimal128(r.cost_usd, 10)) AS cost_usd
FROM requests AS r
WHERE r.project_id = {project:UUID} AND r.session_id IN {sessions:Array(String)}
    AND (
        toUnixTimestamp64Micro(r.ts) < {until:Array(Int64)}[indexOf({sessions:Array(String)}, r.session_id)]
        OR toUnixTimestamp64Micro(r.ts) > {beyond:Array(Int64)}[indexOf({sessions:Array(String)}, r.session_id)]
    )
GROUP BY session_id
"""

# Of each team, key or user, whole hours come from the rollup and the requests after its last whole hour from the rows,
# up to its own time and after another one, in microseconds.
_CALLERS = """
SELECT id, sum(cost_usd) AS cost_usd
FROM (
    SELECT toString(h.COLUMN) AS id, sum(h.cost_usd) AS cost_usd FROM ROLLUP AS h
    WHERE h.project_id = {project:UUID} AND toString(h.COLUMN) IN {ids:Array(String)}
        AND h.hour >= {start:DateTime64(6, 'UTC')}
        AND toUnixTimestamp(h.hour) * 1000000 < {whole:Array(Int64)}[indexOf({ids:Array(String)}, toString(h.COLUMN))]
    GROUP BY id
    UNION ALL
    SELECT toString(r.COLUMN) AS id, sum(toDecimal128(r.cost_usd, 10)) AS cost_usd FROM requests AS r
    WHERE r.project_id = {project:UUID} AND toString(r.COLUMN) IN {ids:Array(String)}
        AND r.ts >= {since:DateTime64(6, 'UTC')} AND r.ts < {end:DateTime64(6, 'UTC')}
        AND toUnixTimestamp64Micro(r.ts) >= {whole:Array(Int64)}[indexOf({ids:Array(String)}, toString(r.COLUMN))]
        AND (
            toUnixTimestamp64Micro(r.ts) < {until:Array(Int64)}[indexOf({ids:Array(String)}, toString(r.COLUMN))]
            OR toUnixTimestamp64Micro(r.ts) > {beyond:Array(Int64)}[indexOf({ids:Array(String)}, toString(r.COLUMN))]
        )
    GROUP BY id
)
GROUP BY id
"""
_KEYS = _CALLERS.replace("COLUMN", "api_key_id").replace("ROLLUP", "spend_hourly")
_TEAMS = _CALLERS.replace("COLUMN", "team_id").replace("ROLLUP", "spend_hourly")
_USERS = _CALLERS.replace("COLUMN", "user_id").replace("ROLLUP", "users_hourly")
# For a page: the rollup alone, which lacks the requests of the last half minute.
_KEYS_OF_TEAM = """
SELECT toString(h.api_key_id) AS id, sum(h.cost_usd) AS cost_usd FROM spend_hourly AS h
WHERE h.project_id = {project:UUID} AND h.team_id = {team:UInt64}
    AND h.hour >= {start:DateTime('UTC')} AND h.hour < {end:DateTime('UTC')}
GROUP BY id
"""
Id = TypeVar("Id", bound=str | int)
Range = tuple[datetime, datetime]


def project_spend(
    project_id: UUID,
    start: datetime,
    until: datetime,
    *,
    beyond: tuple[datetime, datetime] | None = None,
    hasty: bool = True,
) -> Decimal:
    """The cost in US dollars of the requests that arrived from `start`, a full hour, up to but not including `until`.

    Adds the requests between the two times of `beyond`, which begins at `until` or later.
    """
    whole = max(start, _whole(until))
    after, end = beyond or (until, until)
    params = {"project": project_id, "start": start, "whole": whole, "until": until, "beyond": after, "end": end}
    return client.query(_PROJECT, params, row=Decimal, name="spend.project", hasty=hasty)[0]


def session_spends(
    project_id: UUID,
    until: Mapping[str, datetime],
    *,
    beyond: Mapping[str, datetime] | None = None,
    hasty: bool = True,
) -> Mapping[str, Decimal]:
    """The cost in US dollars by session, of requests that arrived before the session's time in `until` or after the one
    in `beyond`. Leaves out sessions without such requests."""
    if not until:
        return {}
    after = beyond or dict.fromkeys(until, NEVER)
    params = {
        "project": project_id,
        "sessions": list(until),
        "until": [_micros(time) for time in until.values()],
        "beyond": [_micros(after[session_id]) for session_id in until],
    }
    rows = client.query(_SESSIONS, params, row=_Spend, name="spend.sessions", hasty=hasty)
    return {row.id: row.cost_usd for row in rows}


def key_spends(
    project_id: UUID, ranges: Mapping[Id, Range], limits: Range, *, hasty: bool = True
) -> Mapping[Id, Decimal]:
    """The cost in US dollars by API key, of requests between the two `limits`, full hours, that arrived before the
    first time of the key's range or after the second. Leaves out keys without such requests."""
    return _caller_spends(_KEYS, "spend.api_keys", project_id, ranges, limits, hasty=hasty)


def team_spends(
    project_id: UUID, ranges: Mapping[Id, Range], limits: Range, *, hasty: bool = True
) -> Mapping[Id, Decimal]:
    """As `key_spends`, by team: the requests of keys while they belonged to it."""
    return _caller_spends(_TEAMS, "spend.teams", project_id, ranges, limits, hasty=hasty)


def team_key_spends(project_id: UUID, team_id: int, limits: Range) -> Mapping[int, Decimal]:
    """The cost in US dollars by API key, of requests between the two `limits`, full hours, while the key belonged to
    the team."""
    params = {"project": project_id, "team": team_id, "start": limits[0], "end": limits[1]}
    rows = client.query(_KEYS_OF_TEAM, params, row=_Spend, name="spend.keys_of_team")
    return {int(row.id): row.cost_usd for row in rows}


def user_spends(
    project_id: UUID, ranges: Mapping[Id, Range], limits: Range, *, hasty: bool = True
) -> Mapping[Id, Decimal]:
    """As `key_spends`, by user."""
    return _caller_spends(_USERS, "spend.users", project_id, ranges, limits, hasty=hasty)


def _caller_spends(
    sql: str, name: str, project_id: UUID, ranges: Mapping[Id, Range], limits: Range, *, hasty: bool
) -> Mapping[Id, Decimal]:
    if not ranges:
        return {}
    start, end = limits
    until = [min(max(start, first), end) for first, _ in ranges.values()]
    whole = [max(start, _whole(time)) for time in until]
    by_text = {str(caller): caller for caller in ranges}
    params = {
        "project": project_id,
        "ids": list(by_text),
        "start": start,
        "end": end,
        "since": min(whole),
        "whole": [_micros(time) for time in whole],
        "until": [_micros(time) for time in until],
        "beyond": [_micros(max(second, time)) for (_, second), time in zip(ranges.values(), until, strict=True)],
    }
    rows = client.query(sql, params, row=_Spend, name=name, hasty=hasty)
    return {by_text[row.id]: row.cost_usd for row in rows}


def _whole(until: datetime) -> datetime:
    over = min(until, datetime.now(UTC)) - _LAG
    return over.replace(minute=0, second=0, microsecond=0)


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)
