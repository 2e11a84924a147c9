"""The way through the attempts: ask, wait and ask again, pass on to the next (design, section 5, Routing).

What went wrong with each is in the state; what it says about the provider goes to the health monitor.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gateway.errors import from_provider
from gateway.pipeline.backoff import wait_before_retry
from gateway.pipeline.barred import Barred
from gateway.pipeline.context import SUBSTITUTE, Attempt, RequestState
from gateway.runtime import Runtime
from integrations.health.targets import CircuitState
from integrations.providers.errors import OF_THE_MODEL, FailureKind, ProviderError, UnsupportedParameterError

T = TypeVar("T")
Call = Callable[[Attempt], Awaitable[T]]

_CIRCUIT_OPEN = "circuit_open"


async def walk(runtime: Runtime, attempts: list[Attempt], state: RequestState, call: Call[T]) -> T:
    """The first answer. Raises ApplicationError: what the client sees of the last failure.

    A target whose circuit is open comes last, as the last resort; one that has rested enough gets one probe. When the
    request's time is up, nobody else is asked.
    """
    walker = _Walker(runtime, state, call)
    postponed: list[Attempt] = []
    for attempt in attempts:
        if walker.told is not None and walker.is_late():
            break
        if walker.bars(attempt):
            continue
        if len(attempts) > 1 and await _rests(runtime, attempt):
            state.note_failure(attempt, 0.0, status=0, error=_CIRCUIT_OPEN)
            postponed.append(attempt)
        elif (result := await walker.ask(attempt)) is not None:
            return result
    for attempt in postponed:
        if walker.told is not None and walker.is_late():
            break
        if not walker.bars(attempt) and (result := await walker.ask(attempt)) is not None:
            return result
    failure = walker.told or ProviderError("no provider was tried", kind=FailureKind.UNAVAILABLE)
    if failure.retryable and failure.retry_after is None:
        failure.retry_after = walker.soonest(attempts)
    raise from_provider(failure) from failure


def failure_of(error: ProviderError | RecursionError) -> ProviderError:
    """Of a call: a decoder gives up on an answer that is nested too deeply."""
    if isinstance(error, ProviderError):
        return error
    return ProviderError("the answer is nested too deeply to be read", kind=FailureKind.UNUSABLE)


async def _rests(runtime: Runtime, attempt: Attempt) -> bool:
    state = runtime.health.health_of(attempt.target).circuit
    if state is CircuitState.CLOSED:
        return False
    return state is CircuitState.OPEN or not await runtime.health.claim_probe(attempt.target)


class _Walker(Generic[T]):
    """A provider is asked at most `retry_max_attempts` times, and all of them together that often plus once for each
    fallback: the retries are shared."""

    __slots__ = ("_barred", "_call", "_retries_left", "_runtime", "_state", "_told_entry", "_waits", "told")

    def __init__(self, runtime: Runtime, state: RequestState, call: Call[T]) -> None:
        self._runtime = runtime
        self._state = state
        self._call = call
        routing = state.snapshot.settings.routing
        self._retries_left = routing.retry_max_attempts - 1 if routing.retry_enabled else 0
        self._waits: list[float] = []
        self._told_entry = SUBSTITUTE
        self.told: ProviderError | None = None
        self._barred: Barred | None = None

    async def ask(self, attempt: Attempt) -> T | None:
        """None when this provider has failed for good and another one may be asked. Raises ApplicationError."""
        state, retries = self._state, 0
        while True:
            state.serve_from(attempt)
            state.asked_at = time.perf_counter()
            try:
                result = await self._call(attempt)
            except (ProviderError, RecursionError) as error:
                failure = failure_of(error)
                _note(self._runtime, state, attempt, failure)
                if _ends_the_walk(failure, attempt):
                    raise from_provider(failure) from failure
                if isinstance(failure, UnsupportedParameterError):
                    return None
                self._keep(failure, attempt)
                if self._retries_left <= 0 or not await _waited(self._runtime, failure, retries, state):
                    return None
                retries += 1
                self._retries_left -= 1
                state.retries += 1
            except BaseException as error:
                # The client has left, or the request is at fault before the provider was asked.
                self._runtime.health.release_probe(attempt.target)
                if isinstance(error, asyncio.CancelledError):
                    state.served_seconds = time.perf_counter() - state.asked_at
                raise
            else:
                took = time.perf_counter() - state.asked_at
                state.served_seconds = took
                self._runtime.health.note_success(attempt.target, took * 1000)
                return result

    def soonest(self, attempts: list[Attempt]) -> float | None:
        """Seconds until one of the providers may answer again, as they said, or as their circuits stay open."""
        rests = [self._runtime.health.rest_of(attempt.target) for attempt in attempts]
        circuits = [min(rest for rest in rests if rest is not None)] if rests and None not in rests else []
        return min((*self._waits, *circuits), default=None)

    def bars(self, attempt: Attempt) -> bool:
        return self._barred is not None and self._barred.holds(attempt)

    def is_late(self) -> bool:
        return self._runtime.deadlines.left(self._state.started) <= 0

    def _keep(self, failure: ProviderError, attempt: Attempt) -> None:
        """Of several failures the client is told the last of those that may pass: it can come back; else the last of
        those that it can mend. That a model is unknown it is told only when all say so: a fallback may have been asked
        for another one. What a model refuses is settled for that model, whatever another provider of it failed with."""
        if self._barred is None:
            self._barred = Barred()
        self._barred.note(failure, attempt)
        if failure.retry_after is not None and failure.retryable:
            self._waits.append(failure.retry_after)
        settled = failure.kind in OF_THE_MODEL and attempt.entry == self._told_entry
        if self.told is None or settled or _weight(failure) >= _weight(self.told):
            self.told, self._told_entry = failure, attempt.entry


def _weight(failure: ProviderError) -> int:
    if failure.retryable:
        return 3
    if failure.kind in OF_THE_MODEL:
        return 2
    return int(failure.kind is not FailureKind.NOT_FOUND)


def _note(runtime: Runtime, state: RequestState, attempt: Attempt, failure: ProviderError) -> None:
    failure.provider = failure.provider or attempt.provider
    took = time.perf_counter() - state.asked_at
    error = failure.kind.value
    if isinstance(failure, UnsupportedParameterError):
        error = "unsupported_parameter"
        runtime.health.release_probe(attempt.target)
    elif failure.kind is FailureKind.TIMEOUT and runtime.deadlines.cut_short(state.started, took):
        # It is not this provider that was slow.
        runtime.health.release_probe(attempt.target)
    else:
        runtime.health.note_failure(attempt.target, failure.kind, took * 1000, failure.retry_after)
    state.note_failure(attempt, took, status=failure.status or 0, error=error, usage=failure.usage)


def _ends_the_walk(failure: ProviderError, attempt: Attempt) -> bool:
    """A request that is at fault is at fault everywhere; what only a fallback cannot express is its own affair."""
    if isinstance(failure, UnsupportedParameterError):
        return not attempt.is_fallback
    return failure.kind is FailureKind.REJECTED


async def _waited(runtime: Runtime, failure: ProviderError, retries: int, state: RequestState) -> bool:
    """Whether the same provider is to be asked again, after the wait that is due."""
    # Jitter protects nothing.
    wait = wait_before_retry(failure, retries, random.random())  # noqa: S311
    if wait is None or wait > runtime.deadlines.left(state.started):
        return False
    await asyncio.sleep(wait)
    return True
