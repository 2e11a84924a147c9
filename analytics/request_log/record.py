"""The record of a request: what the request log keeps of it.

The record's declaration defines the log's columns: `columns` derives from it what the shipper inserts and what an
anonymised request keeps, and `analytics.queries.requests` what is read. A test compares the store's tables with it
(`tests/analytics/test_log_columns.py`).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, TypedDict
from uuid import UUID

import msgspec

from analytics.request_log.sources import Source
from analytics.request_log.types import (
    Column,
    Flag,
    Id,
    Money,
    Name,
    PersonalName,
    PersonalText,
    RetentionDays,
    UInt16,
    UInt32,
    UInt64,
)

DEFAULT_RETENTION_DAYS = 400


class Outcome(StrEnum):
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"  # The client disconnected before the end of the answer.
    INTERRUPTED = "interrupted"  # The worker died while the request was in flight.


CLIENT_REQUEST_ID = "client_request_id"
"""The attribute of a record with the id that the client gave its request in the header `x-request-id`."""


TELEMETRY, BATCH = Source.TELEMETRY.value, Source.BATCH.value


class Operation(StrEnum):
    """The client protocols. Append only: their order numbers them in the table of requests in flight."""

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
    GENERATE_CONTENT = "generate_content"
    COUNT_CONTENT_TOKENS = "count_content_tokens"
    FILES = "files"
    BATCHES = "batches"
    MESSAGE_BATCHES = "message_batches"


class AttemptRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One call to one provider. `status` is the provider's HTTP status, 0 without one; times are in ms.

    `offset_us` is the start in microseconds since the request's arrival. `deployment` is the name of the provider's
    integration, if the project has several.

    Tokens and cost are those that the provider bills for this call, also for a failed one that was billed. `cost_usd`
    is empty when nothing is billed or the price is unknown.
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


class LoggedRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The columns that are recorded, stored and read with the same name and value.

    A column added here, with its migration's number, is in the record, the tables, the shipper's row, the row that
    queries read and, unless its type says otherwise, the row of an anonymised request (CONTRIBUTING.md, "Adding a log
    column").

    Token counts follow `integrations.providers.usage.Usage`: `prompt_tokens` includes cached and cache-written ones;
    they are the answer's. `cost_source` is where the costs came from: `provider` (stated there), the source of a price,
    `mixed` when attempts differ, empty when nothing is charged. `operation` is the client protocol, one of `Operation`,
    and `is_native` means that the response has its form (docs/architecture.md#surfaces). `question_cached`: when a
    rollout's request came, the response cache had an answer to the same question from one of the arms.

    `fallback_used` means that the first choice did not answer, and `other_used` that another provider or model did, not
    just another deployment. An `empty_answer` has neither text nor call; it is known only for requests with a managed
    prompt. `team_id` is the team of the key when the request came, 0 without one.
    """

    session_id: PersonalText = ""
    user_id: PersonalText = ""
    api_key_id: UInt64 = 0
    source: Name = "gateway"
    operation: Name = "chat"
    is_native: Flag = False
    status_code: UInt16
    provider: Name = ""
    model: Name = ""
    requested_model: Name = ""
    error_type: Name = ""
    error_code: Name = ""
    error_message: PersonalText = ""
    finish_reason: Name = ""
    is_stream: Flag = False
    cache_status: Name = "skip"
    retry_count: UInt16 = 0
    fallback_used: Flag = False
    prompt_tokens: UInt32 = 0
    completion_tokens: UInt32 = 0
    cache_read_tokens: UInt32 = 0
    cache_write_tokens: UInt32 = 0
    reasoning_tokens: UInt32 = 0
    tokens_estimated: Flag = False
    cost_known: Flag = False
    cost_source: Name = ""
    latency_ms: UInt32 = 0
    ttft_ms: UInt32 = 0
    prompt_version: UInt32 = 0
    variant: Name = ""
    contract_violation: Flag = False
    question_cached: Flag = False
    other_used: Flag = False
    empty_answer: Flag = False
    team_id: UInt64 = 0


class RequestRecord(LoggedRequest, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One logical request, written to the spool exactly once, whatever its outcome.

    `ts` is the arrival in Unix microseconds (UTC). `request_id` is a UUIDv7. Costs are US dollars as decimal strings
    with 10 places, of every billed attempt; all are empty when a price is unknown (`cost_known` False). `cost_usd` is
    the sum of the others; `cost_other_usd` are fees, and the whole cost if a provider states it. `trace_id` and
    `parent_span_id` are those of the client's `traceparent`, if any; `prompt_name` is the name that `prompt_config_id`
    had.

    A rollout's request also says what it was before it got a version: `language` is the ISO 639 code of the user's last
    text, empty if unknown, and `client_tokens` are the tokens of the client's own request, estimated from its bytes.
    """

    request_id: Id
    project_id: Id
    ts: Annotated[int, Column("DateTime64(6, 'UTC')")]
    outcome: Annotated[Outcome, Column("LowCardinality(String)")]
    cost_input_usd: Money = ""
    cost_cache_read_usd: Money = ""
    cost_cache_write_usd: Money = ""
    cost_output_usd: Money = ""
    cost_other_usd: Money = ""
    cost_usd: Money = ""
    prompt_config_id: Id = ""
    rollout_id: Id = ""
    rollout_stage: UInt16 = 0
    alloc_unit: UInt64 = 0
    alloc_fallback: Flag = False
    retention_days: RetentionDays = DEFAULT_RETENTION_DAYS
    attempts: Annotated[tuple[AttemptRecord, ...], Column("String", is_kept=False)] = ()
    attributes: Annotated[dict[str, str], Column("Map(LowCardinality(String), String)", is_kept=False)] = {}
    trace_id: PersonalText = ""
    parent_span_id: PersonalText = ""
    prompt_name: PersonalName = ""
    language: Name = ""
    client_tokens: UInt32 = 0


class RequestError(TypedDict):
    type: str
    code: str
    message: str | None


# A request in answers of the API: names of columns, with null where it stands for none. `analytics.wire.requests` says
# what is made of several columns, or has another name.
class RequestEntry(TypedDict):
    request_id: UUID
    created_at: datetime
    session_id: str
    user_id: str
    api_key_id: int | None
    team_id: int | None
    source: str
    operation: str
    native: bool
    outcome: str
    status_code: int
    provider: str
    model: str
    requested_model: str
    error: RequestError | None
    finish_reason: str
    stream: bool
    cache: str
    retry_count: int
    fallback_used: bool
    other_used: bool
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    tokens_estimated: bool
    cost_usd: float | None
    cost_source: str | None
    latency_ms: int
    ttft_ms: int | None
    prompt_config_id: UUID | None
    prompt_version: int | None
    rollout_id: UUID | None
    variant: str | None
    contract_violation: bool
    empty_answer: bool
    question_cached: bool
    attempts: list[dict[str, Any]]
    prompt_preview: str | None
    completion_preview: str | None


class SpoolEntry(msgspec.Struct, frozen=True, gc=False):
    """A record and its content: `request` is the JSON body as received, `response` the JSON answer or a stream's events
    as sent.

    Both are empty when content is not logged. The shipper assembles streams and derives searchable text, to keep that
    work off the hot path.
    """

    record: RequestRecord
    request: bytes = b""
    response: bytes = b""
