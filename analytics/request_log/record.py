"""The record of a request: what the request log keeps of it.

The declaration of the record is the table of the log's columns: `columns` makes from it what the shipper inserts and
what an anonymised request keeps, and `analytics.queries.requests` what is read. A test compares the tables of the store
with it (`tests/analytics/test_log_columns.py`).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, TypedDict
from uuid import UUID

import msgspec

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


TELEMETRY = "telemetry"
"""The source of a record that was made of an application's span: its call did not pass the gateway."""

BATCH = "batch"
"""The source of a record that was made of a line of a batch's results (docs/batches.md)."""


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
    GENERATE_CONTENT = "generate_content"
    COUNT_CONTENT_TOKENS = "count_content_tokens"
    FILES = "files"
    BATCHES = "batches"
    MESSAGE_BATCHES = "message_batches"


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


class LoggedRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The columns that are recorded, stored and read with the same name and value.

    A column that is added here, with the number of its migration, is in the record, in the tables, in the row of the
    shipper, in the row that queries read and, unless its type says otherwise, in that of an anonymised request
    (CONTRIBUTING.md, "Adding a log column").

    Token counts follow `integrations.providers.usage.Usage`: `prompt_tokens` includes cached and cache-written ones;
    they are the answer's. `cost_source` is where the costs came from: `provider` (stated there), the source of a price,
    `mixed` when attempts differ, empty when nothing is charged. `operation` is the client protocol, one of `Operation`,
    and `is_native` means that the response has its form (docs/architecture.md#surfaces). `question_cached` says of a
    rollout's request that the response cache had an answer to the same question from one of its arms when it came.

    `fallback_used` means that the first choice did not answer, and `other_used` that another provider or model did, not
    just another deployment of it. An `empty_answer`, which holds neither text nor call, is known of requests with a
    managed prompt. `team_id` is the team that the key belonged to when the request came, 0 without one.
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
    """One logical request, written to the spool exactly once, whatever became of it.

    `ts` is Unix time in microseconds (UTC) of the request's arrival. `request_id` is a UUIDv7. Costs are US dollars as
    decimal strings with 10 places, of every attempt that is billed; all empty when a price is unknown (`cost_known`
    False). `cost_usd` is the sum of the others; `cost_other_usd` are fees, and all of what a provider states.
    `trace_id` and `parent_span_id` are those of the client's `traceparent`, if it sent one; `prompt_name` is the name
    that `prompt_config_id` had.

    A request of a rollout also says what it was before a version was given to it: `language` is that of the user's last
    text as its ISO 639 code, empty where it is unknown, and `client_tokens` are the tokens of the client's own request,
    estimated from its bytes.
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
    """A record and its content: `request` the JSON body as it came in; `response` the JSON answer as it left or, of a
    stream, its events as they left. Both are empty when content is not logged. The shipper puts streams
    together and derives searchable text, so that the hot path does not.
    """

    record: RequestRecord
    request: bytes = b""
    response: bytes = b""
