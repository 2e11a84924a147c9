"""What the stages hand on: the request as it was admitted, frozen, and the account of what became of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from analytics.contracts import Attempt as AttemptRecord
from analytics.contracts import Outcome
from core.errors import ApplicationError
from core.keys import KeyRecord
from gateway.headers import RequestHeaders
from gateway.snapshot.project import ProjectSnapshot
from gateway.wire import ChatCompletionRequest
from integrations.pricing.cost import Price
from integrations.providers.base import Adapter, Credentials, Usage


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request that passed `parse`; `body` is what the client sent."""

    snapshot: ProjectSnapshot
    headers: RequestHeaders
    body: bytes
    request: ChatCompletionRequest


@dataclass(frozen=True, slots=True)
class Attempt:
    """One provider and model to try. `is_fallback` when it is not the first choice."""

    provider: str
    model: str
    credentials: Credentials
    adapter: Adapter
    is_fallback: bool


@dataclass(slots=True)
class Account:
    """Of one authenticated request, filled as it goes, written to the spool exactly once. Times from `perf_counter`."""

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
    price: Price | None = None
    first_output: float = 0.0
    output_bytes: int = 0
    response: list[bytes] = field(default_factory=list)
    attempts: list[AttemptRecord] = field(default_factory=list)
    slot: int | None = None
    recorded: bool = False

    def note_attempt(self, attempt: Attempt, started: float, *, status: int, error: str = "") -> None:
        elapsed = int((time.perf_counter() - started) * 1000)
        self.attempts.append(
            AttemptRecord(
                provider=attempt.provider, model=attempt.model, status=status, error=error, latency_ms=elapsed
            )
        )

    def serve_from(self, attempt: Attempt) -> None:
        self.provider = attempt.provider
        self.model = attempt.model
        self.fallback_used = attempt.is_fallback
        self.price = self.snapshot.price_of(attempt.provider, attempt.model)

    def fail(self, error: ApplicationError) -> None:
        self.outcome = Outcome.ERROR
        self.status_code = error.status
        self.error = error
