"""The requests of a rollout that scores are about, whoever sent them and however late they came."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from analytics.clickhouse import client
from analytics.identifiers import arrival_of
from analytics.queries.variants.by_record import BUCKETS
from analytics.queries.variants.outcomes import FRESH, IN_ARM, IN_TIME, OF_ROLLOUT, REQUEST

# A request's id and its row both contain its time; the two may differ by this much.
_SLACK = timedelta(minutes=10)
_AT_ONCE = 5_000
_LATEST_OF_UNIT = 50


@dataclass(frozen=True)
class OutcomeRequest:
    """`unit` is the user or session that is allocated, empty where requests are. `is_compared`: the rollout compares
    it, in one of its arms. The other fields from `stage` on are then of that rollout."""

    request_id: UUID
    ts: datetime
    unit: str
    is_compared: bool
    stage: int
    variant: str
    alloc_unit: int

    @property
    def bucket(self) -> int:
        return self.alloc_unit % BUCKETS


_COLUMNS = f"""
    r.request_id AS request_id, r.ts AS ts,
    ({OF_ROLLOUT} AND {IN_ARM} AND {REQUEST}) AS is_compared,
    r.rollout_stage AS stage, toString(r.variant) AS variant, r.alloc_unit AS alloc_unit
"""
_COLUMN = {"": "''", "session_id": "r.session_id", "user_id": "r.user_id"}
_BY_ID: Mapping[str, str] = {
    column: f"""
SELECT {_COLUMNS}, {unit} AS unit FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.request_id IN {{ids:Array(UUID)}} AND {IN_TIME}
LIMIT 1 BY r.request_id
"""
    for column, unit in _COLUMN.items()
}
_BY_UNIT: Mapping[str, str] = {
    column: f"""
SELECT {_COLUMNS}, {unit} AS unit FROM requests AS r
WHERE {OF_ROLLOUT} AND {IN_TIME} AND {IN_ARM} AND {REQUEST} AND {unit} IN {{units:Array(String)}}
ORDER BY r.ts DESC LIMIT {_LATEST_OF_UNIT} BY unit
"""
    for column, unit in _COLUMN.items()
}
_UNITS = f"""
SELECT toString(r.variant) AS variant, uniqExact(r.alloc_unit) AS units FROM requests AS r
WHERE {OF_ROLLOUT} AND {IN_TIME} AND {IN_ARM} AND {REQUEST} GROUP BY variant
"""


@dataclass(frozen=True)
class _Units:
    variant: str
    units: int


def scored_requests(
    project_id: UUID, rollout_id: UUID, column: str, request_ids: Collection[UUID]
) -> Mapping[UUID, OutcomeRequest]:
    """Leaves out requests that are not stored. `request_ids` are the gateway's; `column` is that of their units, empty
    for requests. Raises the errors of the store."""
    ids, found = sorted(request_ids), dict[UUID, OutcomeRequest]()
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        times = [time for one in some if (time := arrival_of(one)) is not None]
        params = {
            "project": project_id,
            "rollout": rollout_id,
            "ids": [str(one) for one in some],
            "start": min(times) - _SLACK,
            "end": max(times) + _SLACK,
        }
        rows = client.query(_BY_ID[column], params, row=OutcomeRequest, name="variants.scored", fresh=FRESH)
        found.update({row.request_id: row for row in rows})
    return found


def requests_of_units(
    project_id: UUID, rollout_id: UUID, column: str, units: Collection[str], start: datetime, end: datetime
) -> Mapping[str, list[OutcomeRequest]]:
    """Returns the compared requests of these users or sessions, by `column`: the latest ones, latest first."""
    found: dict[str, list[OutcomeRequest]] = {}
    known = sorted(units)
    for place in range(0, len(known), _AT_ONCE):
        some = known[place : place + _AT_ONCE]
        params = {"project": project_id, "rollout": rollout_id, "units": some, "start": start, "end": end}
        for row in client.query(
            _BY_UNIT[column], params, row=OutcomeRequest, name="variants.scored_units", fresh=FRESH
        ):
            found.setdefault(row.unit, []).append(row)
    return found


def units_by_arm(project_id: UUID, rollout_id: UUID, start: datetime, end: datetime) -> Mapping[str, int]:
    """Returns how many units were allocated to each arm and had a compared request. Raises the errors of the store."""
    params = {"project": project_id, "rollout": rollout_id, "start": start, "end": end}
    return {row.variant: row.units for row in client.query(_UNITS, params, row=_Units, name="variants.scored_arms")}
