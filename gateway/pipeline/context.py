"""What the stages hand on: the request as it was admitted, frozen, and the state of what became of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from analytics.contracts import Attempt as AttemptRecord
from analytics.contracts import Outcome, RequestRecord
from core.errors import ApplicationError
from core.keys import KeyRecord
from gateway.guardrails.verdicts import GuardrailVerdict
from gateway.limits.claims import Held
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.wire import ChatCompletionRequest, LazyFields
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import PromptUse
from integrations.health.targets import Target
from integrations.pricing.cost import Cost, Price, known_cost
from integrations.providers.base import Adapter, Credentials, Media, Usage
from prompts.selectors import PromptVersionRecord


# Structs and no dataclasses: a frozen dataclass costs five times as much to make.
class RequestContext(msgspec.Struct, frozen=True):
    """A request that passed `parse`; `body` is what the client sent, `fields` the same decoded on first use."""

    snapshot: ProjectSnapshot
    headers: RequestHeaders
    body: bytes
    request: ChatCompletionRequest
    fields: LazyFields


SUBSTITUTE = -1
"""The entry of an attempt with a model that the request does not name."""


class Attempt(msgspec.Struct, frozen=True):
    """One provider and model to try.

    `entry` numbers the models that the request names, or that `auto` stands for, in order. `is_fallback` is true for
    every attempt but the first choice, `crosses_vendor` for one whose provider is another than the first choice's,
    `stands_in` for one with a model of the request's `models` in place of its own, which no provider serves here.
    """

    provider: str
    model: str
    credentials: Credentials
    adapter: Adapter
    target: Target
    is_fallback: bool = False
    crosses_vendor: bool = False
    stands_in: bool = False
    entry: int = 0


_NO_PROMPT = PromptUse()


class RequestState(msgspec.Struct):
    """Of one authenticated request, filled as it goes, written to the spool exactly once. Times from `perf_counter`.

    `usage` is the answer's; what failed attempts consumed stands in their records and in `spent`.
    """

    request_id: str
    arrived_us: int
    started: float
    snapshot: ProjectSnapshot
    key: KeyRecord
    headers: RequestHeaders
    body: bytes = b""
    request: ChatCompletionRequest | None = None
    outcome: Outcome = Outcome.SUCCESS
    status_code: int = 200
    error: ApplicationError | None = None
    provider: str = ""
    model: str = ""
    finish_reason: str = ""
    usage: Usage | None = None
    usage_estimated: bool = False
    fallback_used: bool = False
    retries: int = 0
    warnings: tuple[str, ...] = ()  # of the attempt
    pinned: PromptVersionRecord | None = None  # the version to serve, whichever is active or rolled out
    typed: tuple[str, ...] | None = None  # what input guardrails look at instead of the whole request
    prompt: PromptUse = _NO_PROMPT
    prompt_warnings: tuple[str, ...] = ()
    injected_bytes: int = 0
    price: Price | None = None
    first_output: float = 0.0
    output_bytes: int = 0
    response: list[bytes] = msgspec.field(default_factory=list)
    attempts: list[AttemptRecord] = msgspec.field(default_factory=list)  # those that failed
    asked_at: float = 0.0  # when the latest attempt was called
    served_seconds: float | None = None  # how long the attempt took that answers; those that failed are in `attempts`
    served_error: str = ""  # how a stream broke after its first output
    spent: list[Cost | None] = msgspec.field(default_factory=list)  # by failed attempts that are billed; None: unknown
    media: dict[str, Media] = msgspec.field(default_factory=dict)
    held: Held | None = None  # what is reserved of the project's limits
    rate_headers: Sequence[tuple[bytes, bytes]] = ()
    verdicts: tuple[GuardrailVerdict, ...] = ()  # of guardrails
    cache: bytes = b"skip"  # or hit, miss
    cache_key: str = ""  # under which the answer is kept, for `cache_ttl` seconds
    cache_ttl: int = 0
    contract_violation: bool = False
    attributes: dict[str, str] = msgspec.field(default_factory=dict)  # of the record
    slot: int | None = None
    source: str = "gateway"
    recorded: bool = False
    record: RequestRecord | None = None  # as it was written

    def note_failure(
        self, attempt: Attempt, seconds: float, *, status: int, error: str, usage: Usage | None = None
    ) -> None:
        """`usage` when the provider had counted before it failed: then the attempt is billed."""
        billed = usage if usage is not None and usage.is_billed else None
        cost = None
        if billed is not None:
            cost = known_cost(billed, self.snapshot.price_of(attempt.provider, attempt.model))
            self.spent.append(cost)
        usage = billed or Usage()
        self.attempts.append(
            AttemptRecord(
                provider=attempt.provider,
                model=attempt.model,
                status=status,
                error=error,
                latency_ms=int(seconds * 1000),
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cost_usd=f"{cost.total:f}" if cost is not None else "",
                offset_us=self.offset_us(),
            )
        )

    def offset_us(self) -> int:
        """When the latest attempt was called, in microseconds from the request's arrival."""
        return int((self.asked_at - self.started) * 1_000_000) if self.asked_at else 0

    def serve_from(self, attempt: Attempt) -> None:
        self.provider = attempt.provider
        self.model = attempt.model
        self.warnings = ()
        self.fallback_used = attempt.is_fallback or attempt.stands_in
        self.price = self.snapshot.price_of(attempt.provider, attempt.model)

    def fail(self, error: ApplicationError) -> None:
        self.outcome = Outcome.ERROR
        self.status_code = error.status
        self.error = error
