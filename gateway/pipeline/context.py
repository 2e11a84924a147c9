from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from analytics.request_log.record import AttemptRecord, Outcome, RequestRecord
from core.errors import ApplicationError
from core.keys.services import KeyRecord
from gateway.guardrails.verdicts import GuardrailVerdict
from gateway.limits.claims import Reservation
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.wire import ChatCompletionRequest, LazyFields
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import PromptUse
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from integrations.health.targets import Target
from integrations.pricing.cost import Cost, Price, known_cost
from integrations.providers.base import NO_MEDIA, Adapter, Credentials, Media
from integrations.providers.given import NOTHING_GIVEN, Given
from integrations.providers.usage import Usage
from prompts.selectors import PromptVersionRecord


# These classes are structs and no dataclasses: a frozen dataclass costs five times as much to make.
class NativeRequest(msgspec.Struct, frozen=True):
    """A request in the client's own protocol, for providers that speak it (docs/architecture.md#surfaces).

    `body` is the client's JSON, None once a stage has changed the chat completion in a way that the client's own form
    does not show. `untranslatable` are the fields that a chat completion cannot express, with the reasons.
    `is_stateful`: it names what the provider keeps of earlier requests. `opaque` is a field that no guardrail can read,
    with the reason. `fields` are the values of the surface's chat completion, None if they are not kept. `is_plain`,
    `is_translated` and `warnings` are those of `SurfaceRequest`.
    """

    surface: Surface
    body: bytes | None
    untranslatable: tuple[str, ...] = ()
    is_stateful: bool = False
    opaque: str = ""
    fields: Mapping[str, Any] | None = None
    is_plain: bool = False
    is_translated: bool = False
    warnings: tuple[str, ...] = ()


class RequestContext(msgspec.Struct, frozen=True):
    """A request that passed `parse`. `body` is the chat completion's JSON; `fields` is that JSON, decoded on first use.

    `native` is the same request in the client's own protocol, None if that is chat completions.
    """

    snapshot: ProjectSnapshot
    headers: RequestHeaders
    body: bytes
    request: ChatCompletionRequest
    fields: LazyFields
    native: NativeRequest | None = None


SUBSTITUTE = -1
"""The `entry` of an attempt with a model that the request does not name."""


class Attempt(msgspec.Struct, frozen=True):
    """One provider and model to try.

    `entry` numbers the models that the request names, or that `auto` stands for, in order. `is_fallback`: it is not the
    first choice. `is_other`: it has another provider or model than the first choice. `crosses_vendor`: it has another
    provider. `stands_in`: a model of the request's `models` replaces its own, which no provider serves here.
    `max_output` is the model's largest answer in tokens, None if unknown or not needed by the adapter.

    `deployment` names the integration if the project has to choose among several. `sent_model` is its own name of the
    model, empty if it is the same; `own_prices` are its prices by model or None. `is_limited`: the vendor's own limits
    count its use.
    """

    provider: str
    model: str
    credentials: Credentials
    adapter: Adapter
    target: Target
    is_fallback: bool = False
    is_other: bool = False
    crosses_vendor: bool = False
    stands_in: bool = False
    entry: int = 0
    max_output: int | None = None
    deployment: str = ""
    is_limited: bool = False
    sent_model: str = ""
    own_prices: Mapping[str, Price] | None = None

    def as_first(self) -> Attempt:
        return msgspec.structs.replace(self, is_fallback=False, is_other=False, crosses_vendor=False)

    def price_in(self, snapshot: ProjectSnapshot) -> Price | None:
        return self.price_of(snapshot, self.model)

    def price_of(self, snapshot: ProjectSnapshot, model: str) -> Price | None:
        if self.own_prices is not None and model in self.own_prices:
            return self.own_prices[model]
        return snapshot.price_of(self.provider, model)


class Origin(msgspec.Struct, frozen=True):
    """The sender of a request.

    Only the service's own requests (`internal_client.py`) set `pinned`, the prompt version to serve, whichever is
    active or rolled out, and `typed`, the texts that input guardrails check in place of the whole request.
    """

    source: str = "gateway"
    pinned: PromptVersionRecord | None = None
    typed: tuple[str, ...] | None = None


class LimitUse(msgspec.Struct, frozen=True):
    reservation: Reservation | None = None
    headers: Sequence[tuple[bytes, bytes]] = ()


class CacheUse(msgspec.Struct, frozen=True):
    """`status` is skip, hit or miss. A complete answer is stored under `key` for `ttl` seconds, unless `ttl` is 0.

    `question_cached`: an arm of the request's rollout had an answer stored that the client would have taken.
    """

    status: bytes = b"skip"
    key: str = ""
    ttl: int = 0
    question_cached: bool = False


class FailedCall(msgspec.Struct, frozen=True):
    seconds: float
    status: int
    error: str
    usage: Usage | None = None


class RoutingState(msgspec.Struct):
    """The provider and model of the latest attempt, and the attempts that failed before it.

    `answered` is the model that the vendor used in place of `model`, empty if it is the same. `limited_id` is the
    integration of the latest attempt if its use is counted. `attempt_warnings` name what the adapter left out of the
    latest request. `called_at` is the start of the latest call (`perf_counter`), `served_seconds` the duration of the
    call that answers, None before that. `stream_error` is the failure that broke a stream after its first output.
    `is_written`: the transport has written the request of the latest call, which its provider may bill; `credentials`
    are that call's. `failed_costs` belong to the failed attempts that are billed, None for one without a price; `media`
    are fetched files by address.
    """

    provider: str = ""
    model: str = ""
    deployment: str = ""
    limited_id: int | None = None
    price: Price | None = None
    own_prices: Mapping[str, Price] | None = None
    answered: str = ""
    fallback_used: bool = False
    other_used: bool = False
    retries: int = 0
    attempt_warnings: tuple[str, ...] = ()
    called_at: float = 0.0
    served_seconds: float | None = None
    is_written: bool = False
    credentials: Credentials | None = None
    stream_error: str = ""
    failed: tuple[AttemptRecord, ...] = ()
    failed_costs: tuple[Cost | None, ...] = ()
    media: Mapping[str, Media] = NO_MEDIA


class AnswerState(msgspec.Struct):
    """The answer so far. `usage` leaves out failed attempts, which have their own.

    `first_output` is a time (`perf_counter`), 0.0 before the first output. `parts` are the pieces of the body as chat
    completions or, if `is_native`, in the client's own protocol. `recorded` is what the record keeps in their place,
    None for the parts themselves. `given` is what the answer has given out of what the provider keeps.
    """

    finish_reason: str = ""
    usage: Usage | None = None
    usage_estimated: bool = False
    first_output: float = 0.0
    output_bytes: int = 0
    parts: list[bytes] = msgspec.field(default_factory=list)
    contract_violation: bool = False
    is_native: bool = False
    recorded: bytes | None = None
    given: tuple[Given, ...] = NOTHING_GIVEN


_NO_PROMPT, _CLIENT, NO_LIMITS, _CACHE_SKIPPED = PromptUse(), Origin(), LimitUse(), CacheUse()


class RequestState(msgspec.Struct):
    """The state of one authenticated request: the stages fill it in, the last one writes it to the spool exactly once.

    `started` comes from `perf_counter`. `routing` and `answer` change while the request is served; `origin`, `prompt`,
    `limits` and `cache` are replaced as a whole. `slot` is the request's in the table of requests in flight. `surface`
    is the client's protocol, `body` the request as a chat completion. `injected_bytes` are those that managed prompts
    and spotlighting add. `warnings` come from the stages before routing; `attributes` go into the record; `record` is
    what was written to the spool.
    """

    request_id: str
    arrived_us: int
    started: float
    snapshot: ProjectSnapshot
    key: KeyRecord
    headers: RequestHeaders
    body: bytes = b""
    request: ChatCompletionRequest | None = None
    origin: Origin = _CLIENT
    surface: Surface = CHAT
    slot: int | None = None
    outcome: Outcome = Outcome.SUCCESS
    status_code: int = 200
    error: ApplicationError | None = None
    prompt: PromptUse = _NO_PROMPT
    injected_bytes: int = 0
    warnings: tuple[str, ...] = ()
    limits: LimitUse = NO_LIMITS
    cache: CacheUse = _CACHE_SKIPPED
    verdicts: tuple[GuardrailVerdict, ...] = ()
    attributes: dict[str, str] = msgspec.field(default_factory=dict)
    routing: RoutingState = msgspec.field(default_factory=RoutingState)
    answer: AnswerState = msgspec.field(default_factory=AnswerState)
    recorded: bool = False
    record: RequestRecord | None = None

    @property
    def first_output(self) -> float:
        return self.answer.first_output

    def note_failure(self, attempt: Attempt, call: FailedCall) -> None:
        self.routing.is_written = False
        billed = call.usage if call.usage is not None and call.usage.is_billed else None
        cost = None
        if billed is not None:
            cost = known_cost(billed, attempt.price_in(self.snapshot), self.price_of)
            self.routing.failed_costs += (cost,)
        usage = (billed or Usage()).in_all
        self.routing.failed += (
            AttemptRecord(
                provider=attempt.provider,
                model=attempt.model,
                status=call.status,
                error=call.error,
                latency_ms=int(call.seconds * 1000),
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cost_usd=f"{cost.total:f}" if cost is not None else "",
                offset_us=self.offset_us(),
                deployment=attempt.deployment,
            ),
        )

    def offset_us(self) -> int:
        called_at = self.routing.called_at
        return int((called_at - self.started) * 1_000_000) if called_at else 0

    def serve_from(self, attempt: Attempt) -> None:
        routing = self.routing
        routing.provider = attempt.provider
        routing.model = attempt.model
        routing.deployment = attempt.deployment
        routing.credentials = attempt.credentials
        routing.limited_id = attempt.target.integration_id if attempt.is_limited else None
        routing.attempt_warnings = ()
        routing.fallback_used = attempt.is_fallback or attempt.stands_in
        routing.other_used = attempt.is_other or attempt.stands_in
        routing.price, routing.own_prices, routing.answered = attempt.price_in(self.snapshot), attempt.own_prices, ""

    def price_of(self, model: str) -> Price | None:
        own = self.routing.own_prices
        if own is not None and model in own:
            return own[model]
        return self.snapshot.price_of(self.routing.provider, model)

    def fail(self, error: ApplicationError) -> None:
        self.outcome = Outcome.ERROR
        self.status_code = error.status
        self.error = error
