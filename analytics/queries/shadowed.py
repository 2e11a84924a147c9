"""Reads what a shadow needs to know of requests of the baseline before the target answers them, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_cursor import RequestCursor, key_parameters
from analytics.request_log.marks import HEADER_VARIABLES, NO_STORE


@dataclass(frozen=True)
class ShadowedRequest:
    """An answered request. `cost_usd` is 0 when it is not known, `verdicts` those of guardrails in JSON, empty without
    any, and `prompt_preview` empty where no texts are stored."""

    request_id: UUID
    session_id: str
    ts: datetime
    provider: str
    model: str
    prompt_config_id: UUID
    prompt_version: int
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cost_known: bool
    cost_usd: Decimal
    latency_ms: int
    prompt_preview: str
    cache_status: str
    verdicts: str
    is_no_store: bool
    has_header_variables: bool


_SQL = f"""
SELECT r.request_id AS request_id, r.session_id AS session_id, r.ts AS ts, toString(r.provider) AS provider,
    toString(r.model) AS model, r.prompt_config_id AS prompt_config_id, r.prompt_version AS prompt_version,
    toString(r.finish_reason) AS finish_reason, r.prompt_tokens AS prompt_tokens,
    r.completion_tokens AS completion_tokens, r.cost_known AS cost_known, r.cost_usd AS cost_usd,
    r.latency_ms AS latency_ms, r.prompt_preview AS prompt_preview, toString(r.cache_status) AS cache_status,
    r.attributes[{{verdicts:String}}] AS verdicts, r.attributes['{NO_STORE}'] != '' AS is_no_store,
    r.attributes['{HEADER_VARIABLES}'] != '' AS has_header_variables
FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.ts IN {{times:Array(DateTime64(6, 'UTC'))}}
    AND r.request_id IN {{ids:Array(UUID)}}
LIMIT 1 BY r.request_id
"""


def shadowed_requests(
    project_id: UUID, keys: Sequence[RequestCursor], *, verdicts: str
) -> Mapping[UUID, ShadowedRequest]:
    """Returns the requests by id, without those that nobody may see. `verdicts` names the attribute of the guardrails.
    Raises the errors of the store."""
    if not keys:
        return {}
    params = {"project": project_id, "verdicts": verdicts, **key_parameters(keys)}
    found = visible.query(_SQL, params, row=ShadowedRequest, name="requests.shadowed")
    return {row.request_id: row for row in found}
