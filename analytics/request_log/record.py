"""The frozen records that other apps hand to analytics."""

from __future__ import annotations

from enum import StrEnum

import msgspec

DEFAULT_RETENTION_DAYS = 400


class Outcome(StrEnum):
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"  # The client disconnected before the end of the answer.
    INTERRUPTED = "interrupted"  # The worker died while the request was in flight.


CLIENT_REQUEST_ID = "client_request_id"
"""The attribute of a record with the id that the client gave its request in the header `x-request-id`."""


TELEMETRY = "telemetry"
"""The source of a record that was made of an application's span: its call did not pass the gateway."""


class Operation(StrEnum):
    """The client protocols of requests. Their order is that of their numbers in the table of requests in flight, so a
    further one goes to the end."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    EMBEDDINGS = "embeddings"
    COMPLETIONS = "completions"
    RERANK = "rerank"
    MODERATIONS = "moderations"
    TRANSCRIPTIONS = "transcriptions"
    SPEECH = "speech"
    IMAGES = "images"


class AttemptRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One call to one provider. `status` is the provider's HTTP status, 0 when there was none; times in ms.

    `offset_us` is when it began, in microseconds from the request's arrival. `deployment` is the integration of the
    provider, by name, where the project has to choose among several.

    Tokens and cost are those that the provider bills for this call: of the one that answered, and of one that failed
    after it had counted. `cost_usd` is empty when nothing is billed or the price is unknown.
    """

    provider: str
    model: str
    status: int = 0
    error: str = ""
    latency_ms: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: str = ""
    offset_us: int = 0
    deployment: str = ""


class RequestRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One logical request, written to the spool exactly once, whatever became of it.

    `ts` is Unix time in microseconds (UTC) of the request's arrival. `request_id` is a UUIDv7. Token counts follow
    `integrations.providers.usage.Usage`: `prompt_tokens` includes cached and cache-written ones; they are the answer's.
    Costs are US dollars as decimal strings with 10 places, of every attempt that is billed; all empty when a price is
    unknown (`cost_known` False). `cost_usd` is the sum of the others; `cost_other_usd` are fees, and all of what a
    provider states. `cost_source` is where they came from: `provider` (stated there), the source of a price, `mixed`
    when attempts differ, empty when nothing is charged. `trace_id` and `parent_span_id` are those of the client's
    `traceparent`, if it sent one; `prompt_name` is the name that `prompt_config_id` had. `operation` is the client
    protocol, one of `Operation`, and `is_native` means that the response has its form
    (docs/architecture.md#surfaces).
    """

    request_id: str
    project_id: str
    ts: int
    outcome: Outcome
    status_code: int
    api_key_id: int = 0
    source: str = "gateway"
    session_id: str = ""
    user_id: str = ""
    provider: str = ""
    model: str = ""
    requested_model: str = ""
    error_type: str = ""
    error_code: str = ""
    error_message: str = ""
    finish_reason: str = ""
    stream: bool = False
    cache_status: str = "skip"
    retry_count: int = 0
    fallback_used: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    tokens_estimated: bool = False
    cost_known: bool = False
    cost_input_usd: str = ""
    cost_cache_read_usd: str = ""
    cost_cache_write_usd: str = ""
    cost_output_usd: str = ""
    cost_other_usd: str = ""
    cost_usd: str = ""
    cost_source: str = ""
    latency_ms: int = 0
    ttft_ms: int = 0
    prompt_config_id: str = ""
    prompt_version: int = 0
    rollout_id: str = ""
    rollout_stage: int = 0
    variant: str = ""
    alloc_unit: int = 0
    alloc_fallback: bool = False
    contract_violation: bool = False
    retention_days: int = DEFAULT_RETENTION_DAYS
    attempts: tuple[AttemptRecord, ...] = ()
    attributes: dict[str, str] = {}
    trace_id: str = ""
    parent_span_id: str = ""
    prompt_name: str = ""
    operation: str = "chat"
    is_native: bool = False


class SpoolEntry(msgspec.Struct, frozen=True, gc=False):
    """A record and its content: `request` the JSON body as it came in; `response` the JSON answer as it left or, of a
    stream, its events as they left. Both are empty when content is not logged. The shipper puts streams
    together and derives searchable text, so that the hot path does not.
    """

    record: RequestRecord
    request: bytes = b""
    response: bytes = b""
