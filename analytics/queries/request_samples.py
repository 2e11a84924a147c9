"""Samples the chat completions that match a filter and whose texts are stored, and reads those that a shadow takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_cursor import KEYED, Keyed, RequestCursor, keyed
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import request_conditions
from analytics.request_log.marks import HEADER_VARIABLES, NO_STORE
from analytics.request_log.record import Operation

# A sample by hash is taken from so many of the newest requests.
SAMPLED_FROM = 10_000


class SampleOrder(StrEnum):
    NEWEST = "newest"
    RANDOM = "random"  # The order is by a hash of the ids: the same filter gives the same sample.


@dataclass(frozen=True)
class SampledRequest:
    """`cost_usd` is 0 if unknown; the id of no prompt is the zero UUID."""

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


COLUMNS = ", ".join(SampledRequest.__dataclass_fields__)
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
    where, params = request_conditions(project_id, replace(filters, operation=str(Operation.CHAT)))
    # The preview is empty where the project stores no texts.
    sql = _ORDERED[order].format(where=f"{where} AND prompt_preview != ''")
    keys = visible.query(sql, {**params, "limit": limit}, row=RequestCursor, name="requests.sample")
    if not keys:
        return []
    found = {row.request_id: row for row in _rows(project_id, keys)}
    return [found[key.request_id] for key in keys if key.request_id in found]


def _rows(project_id: UUID, keys: Sequence[Keyed]) -> Sequence[SampledRequest]:
    sql = f"SELECT {COLUMNS} FROM requests WHERE {KEYED} LIMIT {{limit:UInt64}}"
    params = {**keyed(project_id, keys), "limit": len(keys)}
    return visible.query(sql, params, row=SampledRequest, name="requests.sampled")


@dataclass(frozen=True)
class ShadowedRequest(SampledRequest):
    """An answered request. `verdicts` are those of guardrails in JSON, empty without any, and `prompt_preview` is empty
    where no texts are stored."""

    finish_reason: str
    cache_status: str
    verdicts: str
    is_no_store: bool
    has_header_variables: bool


_SHADOWED = f"""
SELECT {COLUMNS}, finish_reason, cache_status, attributes[{{verdicts:String}}] AS verdicts,
    attributes['{NO_STORE}'] != '' AS is_no_store, attributes['{HEADER_VARIABLES}'] != '' AS has_header_variables
FROM requests WHERE {KEYED}
LIMIT 1 BY request_id
"""


def shadowed_requests(
    project_id: UUID, keys: Sequence[RequestCursor], *, verdicts: str
) -> Mapping[UUID, ShadowedRequest]:
    """Returns the requests by id, without those that nobody may see. `verdicts` names the attribute of the guardrails.
    Raises the errors of the store."""
    if not keys:
        return {}
    params = {**keyed(project_id, keys), "verdicts": verdicts}
    found = visible.query(_SHADOWED, params, row=ShadowedRequest, name="requests.shadowed")
    return {row.request_id: row for row in found}
