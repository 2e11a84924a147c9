"""Takes a sample of the chat completions that match a filter and whose texts are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import request_conditions
from analytics.request_log.record import Operation

# A sample by hash is taken from so many of the newest requests.
SAMPLED_FROM = 10_000


class SampleOrder(StrEnum):
    NEWEST = "newest"
    RANDOM = "random"  # The order is by a hash of the ids: the same filter gives the same sample.


@dataclass(frozen=True)
class SampledRequest:
    """A request of a sample. `cost_usd` is 0 when it is not known; the id of no prompt is the zero UUID."""

    request_id: UUID
    session_id: str
    ts: datetime
    provider: str
    model: str
    prompt_config_id: UUID
    prompt_version: int
    prompt_tokens: int
    completion_tokens: int
    cost_known: bool
    cost_usd: Decimal
    latency_ms: int
    prompt_preview: str


@dataclass(frozen=True)
class _Key:
    request_id: UUID
    ts: datetime


_COLUMNS = ", ".join(SampledRequest.__dataclass_fields__)
_NEWEST = "SELECT request_id, ts FROM requests WHERE {where} ORDER BY ts DESC, request_id DESC LIMIT {limit}"
_ORDERED = {
    SampleOrder.NEWEST: _NEWEST.replace("{limit}", "{{limit:UInt64}}"),
    SampleOrder.RANDOM: (
        f"SELECT request_id, ts FROM ({_NEWEST.replace('{limit}', str(SAMPLED_FROM))})"
        " ORDER BY cityHash64(toString(request_id)), request_id LIMIT {{limit:UInt64}}"
    ),
}


def sample_requests(
    project_id: UUID, filters: RequestFilter, order: SampleOrder, *, limit: int
) -> Sequence[SampledRequest]:
    """Returns at most `limit` requests, in the order of the sample."""
    where, params = request_conditions(project_id, replace(filters, operation=str(Operation.CHAT)))
    # The preview is empty where the project stores no texts.
    sql = _ORDERED[order].format(where=f"{where} AND prompt_preview != ''")
    keys = visible.query(sql, {**params, "limit": limit}, row=_Key, name="requests.sample")
    if not keys:
        return []
    found = {row.request_id: row for row in _rows(project_id, keys)}
    return [found[key.request_id] for key in keys if key.request_id in found]


def _rows(project_id: UUID, keys: Sequence[_Key]) -> Sequence[SampledRequest]:
    sql = (
        f"SELECT {_COLUMNS} FROM requests WHERE project_id = {{project:UUID}}"
        " AND ts IN {times:Array(DateTime64(6, 'UTC'))} AND request_id IN {ids:Array(UUID)} LIMIT {limit:UInt64}"
    )
    params = {
        "project": project_id,
        "times": [key.ts for key in keys],
        "ids": [key.request_id for key in keys],
        "limit": len(keys),
    }
    return visible.query(sql, params, row=SampledRequest, name="requests.sampled")
