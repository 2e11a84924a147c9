"""The failover between attempts: a provider is called, retried after a wait, or passed over (docs/routing.md).

Each failed call is noted in the request's state and reported to the health monitor.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gateway.errors import from_provider
from gateway.pipeline.barred import Barred
from gateway.pipeline.context import SUBSTITUTE, Attempt, FailedCall, RequestState
from gateway.pipeline.inflight import note_expected
from gateway.runtime.runtime import Runtime
from integrations.health.targets import CircuitState
from integrations.providers.errors import MODEL_REFUSALS, FailureKind, ProviderError, UnsupportedParameterError
from integrations.providers.usage import estimated_tokens

T = TypeVar("T")
Call = Callable[[Attempt], Awaitable[T]]

_CIRCUIT_OPEN = FailedCall(0.0, 0, "circuit_open")


BASE_SECONDS = 0.25
MAX_SECONDS = 4.0
# A provider that demands a longer wait is given up, and the next one is called.
MAX_RETRY_AFTER_SECONDS = 5.0


def wait_before_retry(failure: ProviderError, retries: int, draw: float) -> float | None:
    """Returns the wait in seconds; None if the attempt is over.

    `retries` is the number of earlier retries at this provider, `draw` a random number in [0, 1). The wait has full
    jitter: it lies anywhere between zero and a ceiling that doubles, so that clients that failed together do not come
    back together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). A short Retry-After is
    honoured once: a rate limit that is hit again is not about to end. A broken provider gets the longer of its
    Retry-After and our own wait after that.
    """
    if not failure.retryable:
        return None
    retry_after = failure.retry_after
    if retry_after is not None:
        if retry_after > MAX_RETRY_AFTER_SECONDS or (failure.kind is FailureKind.RATE_LIMITED and retries):
            return None
        if not retries:
            return retry_after
    ceiling = min(MAX_SECONDS, BASE_SECONDS * 2.0**retries)
    return max(draw * ceiling, retry_after or 0.0)


async def first_answer(runtime: Runtime, attempts: list[Attempt], state: RequestState, call: Call[T]) -> T:
    """Returns the first answer. If no attempt gives one, raises ApplicationError for the failure that the client should
    see.

    A target whose circuit is open comes last, as the last resort; one whose circuit is half open gets one probe. When
    the request's time is up, no further provider is called.
    """
    failover = _Failover(runtime, state, call, attempts)
    postponed: list[Attempt] = []
    for attempt in attempts:
        if failover.is_late():
            break
        if failover.bars(attempt):
            continue
        if len(attempts) > 1 and await is_circuit_open(runtime, attempt):
            state.note_failure(attempt, _CIRCUIT_OPEN)
            postponed.append(attempt)
        elif (result := await failover.ask(attempt)) is not None:
            return result
    for attempt in postponed:
        if failover.is_late():
            break
        if not failover.bars(attempt) and (result := await failover.ask(attempt)) is not None:
            return result
    failure = failover.last_failure or ProviderError("no provider was tried", kind=FailureKind.UNAVAILABLE)
    if failure.retryable and failure.retry_after is None:
        failure.retry_after = failover.soonest(attempts)
    raise from_provider(failure) from failure


def failure_of(error: ProviderError | RecursionError) -> ProviderError:
    if isinstance(error, ProviderError):
        return error
    return ProviderError("the answer is nested too deeply to be read", kind=FailureKind.UNUSABLE)


async def is_circuit_open(runtime: Runtime, attempt: Attempt) -> bool:
    """A half-open circuit counts as open for all but the request that claims its probe."""
    circuit = runtime.health.health_of(attempt.target).circuit
    if circuit is CircuitState.CLOSED:
        return False
    return circuit is CircuitState.OPEN or not await runtime.health.claim_probe(attempt.target)


class _Failover(Generic[T]):
    """The calls of one request.

    A provider is called at most `retry_max_attempts` times, all providers together that often plus once for each
    fallback: the retries are shared.
    """

    __slots__ = (
        "_attempts",
        "_barred",
        "_call",
        "_last_failure_entry",
        "_retries_left",
        "_runtime",
        "_state",
        "_waits",
        "last_failure",
    )

    def __init__(self, runtime: Runtime, state: RequestState, call: Call[T], attempts: list[Attempt]) -> None:
        self._runtime = runtime
        self._state = state
        self._call = call
        self._attempts = attempts
        settings = state.snapshot.settings
        self._retries_left = settings.retry_max_attempts - 1 if settings.retry_enabled else 0
        self._waits: list[float] = []
        self._last_failure_entry = SUBSTITUTE
        self.last_failure: ProviderError | None = None
        self._barred: Barred | None = None

    async def ask(self, attempt: Attempt) -> T | None:
        state, routing, retries = self._state, self._state.routing, 0
        while True:
            state.serve_from(attempt)
            note_expected(self._runtime, state)
            if attempt.is_limited:
                self._note_use(attempt)
            routing.called_at = time.perf_counter()
            try:
                result = await self._call(attempt)
            except (ProviderError, RecursionError) as error:
                failure = failure_of(error)
                _note(self._runtime, state, attempt, failure)
                if _is_final(failure, attempt):
                    raise from_provider(failure) from failure
                if isinstance(failure, UnsupportedParameterError):
                    return None
                self._keep(failure, attempt)
                if not self._may_retry(attempt) or not await _waited(self._runtime, failure, retries, state):
                    return None
                retries += 1
                self._retries_left -= 1
                routing.retries += 1
            except BaseException as error:
                # The client has left, or the request is at fault before the provider was called.
                self._runtime.health.release_probe(attempt.target)
                if isinstance(error, asyncio.CancelledError):
                    routing.served_seconds = time.perf_counter() - routing.called_at
                raise
            else:
                seconds = time.perf_counter() - routing.called_at
                routing.served_seconds = seconds
                self._runtime.health.note_success(attempt.target, seconds * 1000)
                return result

    def _note_use(self, attempt: Attempt) -> None:
        prompt = estimated_tokens(len(self._state.body))
        self._runtime.health.use.note(attempt.target.integration_id, requests=1, tokens=prompt)

    def _may_retry(self, attempt: Attempt) -> bool:
        """A later deployment of the same provider can answer at once, so that nobody has to wait for this one."""
        return self._retries_left > 0 and not (attempt.deployment and self._has_sibling(attempt))

    def _has_sibling(self, attempt: Attempt) -> bool:
        later = self._attempts[self._attempts.index(attempt) + 1 :]
        return any(
            other.provider == attempt.provider
            and other.model == attempt.model
            and self._runtime.health.health_of(other.target).circuit is CircuitState.CLOSED
            for other in later
        )

    def soonest(self, attempts: list[Attempt]) -> float | None:
        seconds = [self._runtime.health.open_seconds(attempt.target) for attempt in attempts]
        circuits = [min(one for one in seconds if one is not None)] if seconds and None not in seconds else []
        return min((*self._waits, *circuits), default=None)

    def bars(self, attempt: Attempt) -> bool:
        return self._barred is not None and self._barred.holds(attempt)

    def is_late(self) -> bool:
        return self.last_failure is not None and self._runtime.deadlines.left(self._state.started) <= 0

    def _keep(self, failure: ProviderError, attempt: Attempt) -> None:
        """Chooses the failure that the client sees.

        A transient failure wins, the last one, so that the client retries; else the last one that its sender can
        correct. An unknown model is reported only if all attempts report it: a fallback may have been called with
        another one. A model's refusal is settled for that model, however another provider of it failed.
        """
        if self._barred is None:
            self._barred = Barred()
        self._barred.note(failure, attempt)
        if failure.retry_after is not None and failure.retryable:
            self._waits.append(failure.retry_after)
        settled = failure.kind in MODEL_REFUSALS and attempt.entry == self._last_failure_entry
        if self.last_failure is None or settled or _weight(failure) >= _weight(self.last_failure):
            self.last_failure, self._last_failure_entry = failure, attempt.entry


def _weight(failure: ProviderError) -> int:
    if failure.retryable:
        return 3
    if failure.kind in MODEL_REFUSALS:
        return 2
    return int(failure.kind is not FailureKind.NOT_FOUND)


def _note(runtime: Runtime, state: RequestState, attempt: Attempt, failure: ProviderError) -> None:
    failure.provider = failure.provider or attempt.provider
    seconds = time.perf_counter() - state.routing.called_at
    error = failure.kind.value
    if isinstance(failure, UnsupportedParameterError):
        error = "unsupported_parameter"
        runtime.health.release_probe(attempt.target)
    elif failure.kind is FailureKind.TIMEOUT and runtime.deadlines.cut_short(state.started, seconds):
        # The provider was not slow: earlier attempts had used up its time.
        runtime.health.release_probe(attempt.target)
    else:
        runtime.health.note_failure(attempt.target, failure.kind, seconds * 1000, failure.retry_after)
    state.note_failure(attempt, FailedCall(seconds, failure.status or 0, error, failure.usage))


def _is_final(failure: ProviderError, attempt: Attempt) -> bool:
    """A request at fault is at fault everywhere; a parameter that a fallback cannot express only rules out that one."""
    if isinstance(failure, UnsupportedParameterError):
        return not attempt.is_fallback
    return failure.kind is FailureKind.REJECTED


async def _waited(runtime: Runtime, failure: ProviderError, retries: int, state: RequestState) -> bool:
    # Ruff wants a cryptographic generator: the jitter of a wait protects no secret.
    wait = wait_before_retry(failure, retries, random.random())  # noqa: S311
    if wait is None or wait > runtime.deadlines.left(state.started):
        return False
    await asyncio.sleep(wait)
    return True
