"""The filter of lists of requests, and its conditions in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.queries.operations import OF_OPERATION, stored_operations
from analytics.request_log.record import CLIENT_REQUEST_ID


@dataclass(frozen=True)
class RequestFilter:
    """The filter of a list of requests: an empty text or None is no filter, and all bounds are inclusive."""

    session_id: str = ""
    user_id: str = ""
    outcome: str = ""
    status_code: int | None = None
    source: str = ""
    operation: str = ""
    provider: str = ""
    model: str = ""
    requested_model: str = ""
    error_type: str = ""
    error_code: str = ""
    prompt_config_id: UUID | None = None
    prompt_version: int | None = None
    rollout_id: UUID | None = None
    variant: str = ""
    start: datetime | None = None
    end: datetime | None = None
    min_latency_ms: int | None = None
    max_latency_ms: int | None = None
    min_cost_usd: Decimal | None = None
    max_cost_usd: Decimal | None = None
    client_request_id: str = ""
    api_key_id: int | None = None
    team_id: int | None = None
    min_ttft_ms: int | None = None
    max_ttft_ms: int | None = None
    deployment: str = ""
    language: str = ""


# Conditions by field of RequestFilter. `cost_usd` of a request whose price is unknown is 0, and so is `ttft_ms` of one
# that was not streamed.
_CONDITIONS = {
    "session_id": "session_id = {session_id:String}",
    "user_id": "user_id = {user_id:String}",
    "outcome": "outcome = {outcome:String}",
    "status_code": "status_code = {status_code:UInt16}",
    "source": "source = {source:String}",
    "operation": OF_OPERATION,
    "provider": "provider = {provider:String}",
    "model": "model = {model:String}",
    "requested_model": "requested_model = {requested_model:String}",
    "error_type": "error_type = {error_type:String}",
    "error_code": "error_code = {error_code:String}",
    "prompt_config_id": "prompt_config_id = {prompt_config_id:UUID}",
    "prompt_version": "prompt_version = {prompt_version:UInt32}",
    "rollout_id": "rollout_id = {rollout_id:UUID}",
    "variant": "variant = {variant:String}",
    "client_request_id": f"attributes['{CLIENT_REQUEST_ID}'] = {{client_request_id:String}}",
    "start": "ts >= {start:DateTime64(6, 'UTC')}",
    "end": "ts <= {end:DateTime64(6, 'UTC')}",
    "min_latency_ms": "latency_ms >= {min_latency_ms:UInt32}",
    "max_latency_ms": "latency_ms <= {max_latency_ms:UInt32}",
    "min_cost_usd": "cost_known AND cost_usd >= {min_cost_usd:Decimal(18, 10)}",
    "max_cost_usd": "cost_known AND cost_usd <= {max_cost_usd:Decimal(18, 10)}",
    "api_key_id": "api_key_id = {api_key_id:UInt64}",
    "team_id": "team_id = {team_id:UInt64}",
    "min_ttft_ms": "ttft_ms > 0 AND ttft_ms >= {min_ttft_ms:UInt32}",
    "max_ttft_ms": "ttft_ms > 0 AND ttft_ms <= {max_ttft_ms:UInt32}",
    "language": "language = {language:String}",
    # A deployment without a name of its own is called like its provider.
    "deployment": "if(deployment = '', provider, deployment) = {deployment:String}",
}


@dataclass(frozen=True)
class Conditions:
    """The conditions of a filter by its field: SQL over columns that `requests` and the rollups have under the same
    names."""

    conditions: Mapping[str, str]
    values: Mapping[str, Any]


def conditions_of(filters: RequestFilter) -> Conditions:
    values = {name: value for name in _CONDITIONS if (value := getattr(filters, name)) not in ("", None)}
    if filters.operation:
        values["operation"] = stored_operations(filters.operation)
    return Conditions({name: _CONDITIONS[name] for name in values}, values)
