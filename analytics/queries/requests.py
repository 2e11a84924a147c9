"""Lists requests, and reads one request with its bodies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.identifiers import arrival_of
from analytics.queries import visible
from analytics.queries.request_days import list_days, locate
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.request_log.record import LoggedRequest


class RequestRow(LoggedRequest, frozen=True, kw_only=True):
    """A request without its texts. `cost_usd` is 0 when the cost is not known; without a prompt its id is the zero
    UUID."""

    request_id: UUID
    ts: datetime
    outcome: str
    cost_usd: Decimal
    prompt_config_id: UUID
    rollout_id: UUID
    attempts: str
    prompt_preview: str
    completion_preview: str


class RequestDetailRow(RequestRow, frozen=True, kw_only=True):
    """A request with its `attributes`, which few requests have, by name: verdicts of guardrails, how a contract was
    broken."""

    attributes: dict[str, str]


@dataclass(frozen=True)
class Payload:
    """The bodies of a request and its answer as they went over the wire, in JSON."""

    request: str
    response: str


@dataclass(frozen=True)
class _Count:
    count: int


@dataclass(frozen=True)
class _Project:
    project_id: UUID


@dataclass(frozen=True)
class _Time:
    ts: datetime


COLUMNS = ", ".join(RequestRow.__struct_fields__)
_WITHOUT_PREVIEWS = ", ".join(
    f"'' AS {column}" if column.endswith("_preview") else column for column in RequestRow.__struct_fields__
)
_NEWEST_FIRST = "ORDER BY ts DESC, request_id DESC"
_OLDEST_FIRST = "ORDER BY ts, request_id"
# An id is made when its request arrives, by a clock that may be set back or forth in between.
_CLOCKS_DIFFER_BY = timedelta(minutes=1)


def list_requests(
    project_id: UUID, filters: RequestFilter, *, limit: int, offset: int, oldest_first: bool = False
) -> tuple[int, list[RequestRow]]:
    """Returns the number of requests that match, and one page of them."""
    days = list_days(project_id, filters)
    if days is None:
        count = count_requests(project_id, filters)
        return count, _page(project_id, filters, count, limit=limit, offset=offset, oldest_first=oldest_first)
    count = sum(day.requests for day in days)
    stretch = locate(days if oldest_first else days[::-1], filters, limit=limit, offset=offset)
    if stretch is None:
        return count, []
    page = _page(
        project_id, stretch.filters, stretch.count, limit=limit, offset=stretch.offset, oldest_first=oldest_first
    )
    return count, page


def count_requests(project_id: UUID, filters: RequestFilter) -> int:
    """Returns the number of requests that match, counted in the log itself."""
    where, params = request_conditions(project_id, filters)
    sql = f"SELECT count() AS count FROM requests WHERE {where}"
    return visible.query(sql, params, row=_Count, name="requests.count")[0].count


def _page(
    project_id: UUID, filters: RequestFilter, count: int, *, limit: int, offset: int, oldest_first: bool
) -> list[RequestRow]:
    """Returns one page of the `count` requests that match."""
    limit = min(limit, count - offset)
    if limit <= 0:
        return []
    # The page is read from the nearer end, since all keys up to it are read. New requests do not move the older end.
    beyond = count - offset - limit
    from_far_end = beyond < offset
    order = _OLDEST_FIRST if oldest_first != from_far_end else _NEWEST_FIRST
    where, params = request_conditions(project_id, filters)
    sql = f"SELECT {COLUMNS} FROM requests WHERE {where} {order} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"
    page = {**params, "limit": limit, "offset": beyond if from_far_end else offset}
    rows = visible.query(sql, page, row=RequestRow, name="requests.list")
    return rows[::-1] if from_far_end else rows


def get_requests(project_id: UUID, keys: Sequence[tuple[datetime, UUID]]) -> list[RequestRow]:
    """Returns the stored requests with these times and ids, the newest first and without previews.

    The previews are most of a row: for a few rows from all over the table a megabyte is read for each.
    """
    if not keys:
        return []
    where = (
        "project_id = {project:UUID} AND ts IN {times:Array(DateTime64(6, 'UTC'))} AND request_id IN {ids:Array(UUID)}"
    )
    # With a LIMIT the wide columns are read for the rows found, and not for the blocks those are in.
    sql = f"SELECT {_WITHOUT_PREVIEWS} FROM requests WHERE {where} {_NEWEST_FIRST} LIMIT {{limit:UInt64}}"
    params = {
        "project": project_id,
        "times": [ts for ts, _ in keys],
        "ids": [request_id for _, request_id in keys],
        "limit": len(keys),
    }
    return visible.query(sql, params, row=RequestRow, name="requests.get_many")


def _places_of(project_id: UUID, request_id: UUID) -> Iterator[tuple[str, dict[str, Any]]]:
    return _places_in("project_id = {project:UUID}", {"project": project_id}, request_id)


def _places_in(projects: str, of_projects: Mapping[str, Any], request_id: UUID) -> Iterator[tuple[str, dict[str, Any]]]:
    """Returns conditions that find a request, each with its parameters, to be tried in turn. `projects` is the
    condition of its project.

    The key of the table begins with the time of arrival, which the gateway's ids hold. A search by id alone asks the
    skip index of every granule of the project, which takes four times as long at ten million requests.
    """
    where = f"{projects} AND request_id = {{request:UUID}}"
    params: dict[str, Any] = {**of_projects, "request": request_id}
    arrived = arrival_of(request_id)
    if arrived is not None:
        near = {"ts_from": arrived - _CLOCKS_DIFFER_BY, "ts_to": arrived + _CLOCKS_DIFFER_BY}
        within = "ts >= {ts_from:DateTime64(6, 'UTC')} AND ts <= {ts_to:DateTime64(6, 'UTC')}"
        yield f"{where} AND {within}", {**params, **near}
    yield where, params


def get_request(project_id: UUID, request_id: UUID) -> RequestDetailRow | None:
    for where, params in _places_of(project_id, request_id):
        sql = f"SELECT {COLUMNS}, attributes FROM requests WHERE {where} LIMIT 1"
        rows = visible.query(sql, params, row=RequestDetailRow, name="requests.get")
        if rows:
            return rows[0]
    return None


def get_request_time(project_id: UUID, request_id: UUID) -> datetime | None:
    """Returns when a request was made, or None for one that is not stored, without reading its wide row."""
    for where, params in _places_of(project_id, request_id):
        sql = f"SELECT ts FROM requests PREWHERE {where} LIMIT 1"
        rows = visible.query(sql, params, row=_Time, name="requests.time")
        if rows:
            return rows[0].ts
    return None


def find_project(project_ids: Collection[UUID], request_id: UUID) -> UUID | None:
    """Returns the one of these projects that has the request, or None."""
    among = "project_id IN {projects:Array(UUID)}", {"projects": list(project_ids)}
    for where, params in _places_in(*among, request_id):
        sql = f"SELECT project_id FROM requests PREWHERE {where} LIMIT 1"
        rows = client.query(sql, params, row=_Project, name="requests.project")
        if rows:
            return rows[0].project_id
    return None


def get_payload(project_id: UUID, request: RequestRow) -> Payload | None:
    """Returns the bodies of a request, or None when they were not logged or are past their retention."""
    return get_payload_at(project_id, request.ts, request.request_id)


def get_payload_at(project_id: UUID, ts: datetime, request_id: UUID) -> Payload | None:
    """Returns the bodies of the request with this time and id, as `get_payload` does."""
    sql = (
        "SELECT request, response FROM payloads"
        " WHERE project_id = {project:UUID} AND ts = {ts:DateTime64(6, 'UTC')} AND request_id = {request:UUID} LIMIT 1"
    )
    params = {"project": project_id, "ts": ts, "request": request_id}
    rows = visible.query(sql, params, row=Payload, name="requests.payload")
    return rows[0] if rows else None


def request_conditions(project_id: UUID, filters: RequestFilter) -> tuple[str, dict[str, Any]]:
    """Returns the WHERE of a query on `requests`, and its parameters."""
    given = conditions_of(filters)
    where = " AND ".join(["project_id = {project:UUID}", *given.conditions.values()])
    return where, {"project": project_id, **given.values}
