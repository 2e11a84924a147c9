"""Which requests were made, and what went over the wire in one of them?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.clickhouse import client


@dataclass(frozen=True)
class RequestFilter:
    session_id: str = ""
    outcome: str = ""


@dataclass(frozen=True)
class RequestRow:
    """A request without its texts. `cost_usd` is 0 when it is not known; the id of no prompt is the zero UUID."""

    request_id: UUID
    ts: datetime
    session_id: str
    user_id: str
    api_key_id: int
    source: str
    outcome: str
    status_code: int
    provider: str
    model: str
    requested_model: str
    error_type: str
    error_code: str
    error_message: str
    finish_reason: str
    is_stream: bool
    cache_status: str
    retry_count: int
    fallback_used: bool
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    tokens_estimated: bool
    cost_known: bool
    cost_usd: Decimal
    latency_ms: int
    ttft_ms: int
    prompt_config_id: UUID
    prompt_version: int
    rollout_id: UUID
    variant: str
    contract_violation: bool
    attempts: str
    prompt_preview: str
    completion_preview: str


@dataclass(frozen=True)
class Payload:
    """Bodies as they went over the wire, JSON."""

    request: str
    response: str


@dataclass(frozen=True)
class _Count:
    count: int


_COLUMNS = ", ".join(RequestRow.__dataclass_fields__)


def list_requests(
    project_id: UUID, wanted: RequestFilter, *, limit: int, offset: int, oldest_first: bool = False
) -> tuple[int, list[RequestRow]]:
    """How many requests match, and one page of them."""
    where, params = _where(project_id, wanted)
    direction = "ASC" if oldest_first else "DESC"
    order = f"ORDER BY ts {direction}, request_id {direction} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"
    sql = f"SELECT {_COLUMNS} FROM requests WHERE {where} {order}"  # noqa: S608 - fragments of this file
    rows = client.query(sql, {**params, "limit": limit, "offset": offset}, row=RequestRow, name="requests.list")
    if len(rows) < limit and (rows or not offset):
        return offset + len(rows), rows
    count = f"SELECT count() AS count FROM requests WHERE {where}"  # noqa: S608 - as above
    return client.query(count, params, row=_Count, name="requests.count")[0].count, rows


def get_request(project_id: UUID, request_id: UUID) -> RequestRow | None:
    where = "project_id = {project:UUID} AND request_id = {request:UUID}"
    sql = f"SELECT {_COLUMNS} FROM requests WHERE {where} LIMIT 1"  # noqa: S608 - as above
    rows = client.query(sql, {"project": project_id, "request": request_id}, row=RequestRow, name="requests.get")
    return rows[0] if rows else None


def get_payload(project_id: UUID, request: RequestRow) -> Payload | None:
    """None when content was not logged or is past its retention."""
    sql = (
        "SELECT request, response FROM payloads"
        " WHERE project_id = {project:UUID} AND ts = {ts:DateTime64(6, 'UTC')} AND request_id = {request:UUID} LIMIT 1"
    )
    params = {"project": project_id, "ts": request.ts, "request": request.request_id}
    rows = client.query(sql, params, row=Payload, name="requests.payload")
    return rows[0] if rows else None


def _where(project_id: UUID, wanted: RequestFilter) -> tuple[str, dict[str, Any]]:
    where = "project_id = {project:UUID}"
    values: dict[str, Any] = {"project": project_id}
    if wanted.session_id:
        where += " AND session_id = {session:String}"
        values["session"] = wanted.session_id
    if wanted.outcome:
        where += " AND outcome = {outcome:String}"
        values["outcome"] = wanted.outcome
    return where, values
