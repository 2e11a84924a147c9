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
from analytics.queries.request_cursor import KEYED, Keyed, keyed
from analytics.queries.request_days import list_days, locate
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.shared_texts import StoredRequest, whole_requests
from analytics.request_log.record import LoggedRequest


class RequestRow(LoggedRequest, frozen=True, kw_only=True):
    """A request without its texts. `cost_usd` is 0 if unknown; the id of no prompt is the zero UUID."""

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
    attributes: dict[str, str]


@dataclass(frozen=True)
class Payload:
    request: str
    response: str


@dataclass(frozen=True)
class StoredPayload(StoredRequest):
    response: str


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
    where, params = request_conditions(project_id, filters)
    sql = f"SELECT count() FROM requests WHERE {where}"
    return visible.query(sql, params, row=int, name="requests.count")[0]


def _page(
    project_id: UUID, filters: RequestFilter, count: int, *, limit: int, offset: int, oldest_first: bool
) -> list[RequestRow]:
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


def get_requests(project_id: UUID, keys: Sequence[Keyed]) -> list[RequestRow]:
    """The newest first and without previews.

    Previews are most of a row: for a few rows from all over the table, a megabyte is read for each.
    """
    if not keys:
        return []
    # With a LIMIT the wide columns are read for the rows found, and not for the blocks those are in.
    sql = f"SELECT {_WITHOUT_PREVIEWS} FROM requests WHERE {KEYED} {_NEWEST_FIRST} LIMIT {{limit:UInt64}}"
    params = {**keyed(project_id, keys), "limit": len(keys)}
    return visible.query(sql, params, row=RequestRow, name="requests.get_many")


def _places_of(project_id: UUID, request_id: UUID) -> Iterator[tuple[str, dict[str, Any]]]:
    return _places_in("project_id = {project:UUID}", {"project": project_id}, request_id)


def _places_in(projects: str, of_projects: Mapping[str, Any], request_id: UUID) -> Iterator[tuple[str, dict[str, Any]]]:
    """Conditions that find a request, to try in turn, with parameters; `projects` is the condition of its project.

    The table's key begins with the arrival time, which the gateway's ids hold. A search by id alone asks the skip index
    of every granule of the project, which takes four times as long at ten million requests.
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
    """When the request was made, without reading its wide row; None if it is not stored."""
    for where, params in _places_of(project_id, request_id):
        sql = f"SELECT ts FROM requests PREWHERE {where} LIMIT 1"
        rows = visible.query(sql, params, row=datetime, name="requests.time")
        if rows:
            return rows[0]
    return None


def find_project(project_ids: Collection[UUID], request_id: UUID) -> UUID | None:
    among = "project_id IN {projects:Array(UUID)}", {"projects": list(project_ids)}
    for where, params in _places_in(*among, request_id):
        sql = f"SELECT project_id FROM requests PREWHERE {where} LIMIT 1"
        rows = client.query(sql, params, row=UUID, name="requests.project")
        if rows:
            return rows[0]
    return None


def get_payload(project_id: UUID, request: RequestRow) -> Payload | None:
    """None if the bodies were not logged or are past their retention."""
    return get_payload_at(project_id, request.ts, request.request_id)


def get_payload_at(project_id: UUID, ts: datetime, request_id: UUID) -> Payload | None:
    sql = (
        "SELECT request_id, request, response, shared, shared_at FROM payloads"
        " WHERE project_id = {project:UUID} AND ts = {ts:DateTime64(6, 'UTC')} AND request_id = {request:UUID} LIMIT 1"
    )
    params = {"project": project_id, "ts": ts, "request": request_id}
    rows = visible.query(sql, params, row=StoredPayload, name="requests.payload")
    return whole_payloads(project_id, rows).get(request_id)


def whole_payloads(project_id: UUID, rows: Sequence[StoredPayload]) -> dict[UUID, Payload]:
    requests = whole_requests(project_id, rows)
    return {row.request_id: Payload(requests[row.request_id], row.response) for row in rows}


def request_conditions(project_id: UUID, filters: RequestFilter) -> tuple[str, dict[str, Any]]:
    given = conditions_of(filters)
    where = " AND ".join(["project_id = {project:UUID}", *given.conditions.values()])
    return where, {"project": project_id, **given.values}


_OWN = """
SELECT request_id, ts, outcome, model, error_code FROM requests
PREWHERE project_id = {{project:UUID}} AND source = 'gateway' {conditions}
ORDER BY ts DESC LIMIT 1
"""


@dataclass(frozen=True)
class OwnRequestRow:
    request_id: UUID
    ts: datetime
    outcome: str
    model: str
    error_code: str


def latest_own_request(
    project_id: UUID, *, api_key_id: int | None = None, since: datetime | None = None
) -> OwnRequestRow | None:
    """Returns the project's latest request by the gateway; with `api_key_id` that of one key. All rows from
    `since` on are read for a key without a request. Raises the errors of the store."""
    conditions, params = "", dict[str, Any](project=project_id)
    if api_key_id is not None:
        conditions += " AND api_key_id = {key:UInt64}"
        params["key"] = api_key_id
    if since is not None:
        conditions += " AND ts >= {since:DateTime64(6, 'UTC')}"
        params["since"] = since
    rows = visible.query(_OWN.format(conditions=conditions), params, row=OwnRequestRow, name="requests.own")
    return rows[0] if rows else None
