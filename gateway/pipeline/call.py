"""Stage 8: one call to one provider, whole or up to the first output of a stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.failover import walk
from gateway.pipeline.prepare import prepared
from gateway.pipeline.reasoning import asked_with_reasoning
from gateway.pipeline.uncounted import estimate, with_usage, without_usage
from gateway.protocol.wire import LazyFields, nested_too_deeply
from gateway.runtime import Runtime
from integrations.providers.additions import with_headers, with_parameters
from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    ParsedResponse,
    StreamEvent,
    StreamTranslator,
    Usage,
)
from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.base import UpstreamResponse

T = TypeVar("T")

_ERROR_BODY_BYTES = 256 * 1024


@dataclass(slots=True)
class OpenStream:
    """A stream that passed the first-chunk gate: `events` are those read so far, the rest comes from `chunks`.

    `translator` has been closed already when `ended`: the whole stream arrived before its first output could be sent.
    """

    response: UpstreamResponse
    chunks: AsyncIterator[bytes]
    translator: StreamTranslator
    events: list[StreamEvent]
    ended: bool
    attempt: Attempt
    received: int  # bytes


def complete(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], state: RequestState
) -> Awaitable[ParsedResponse]:
    """The first whole answer. Raises ApplicationError when no attempt gave one."""
    return _walked(_complete_once, runtime, context, attempts, state)


def open_stream(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], state: RequestState
) -> Awaitable[OpenStream]:
    """The first stream with real output in it (or a proper end without any). Raises ApplicationError when none has."""
    return _walked(_open_once, runtime, context, attempts, state)


def _walked(
    ask: Callable[[Runtime, RequestContext, Attempt, RequestState], Awaitable[T]],
    runtime: Runtime,
    context: RequestContext,
    attempts: list[Attempt],
    state: RequestState,
) -> Awaitable[T]:
    if not context.snapshot.settings.reasoning.introspection:
        return walk(runtime, attempts, state, lambda attempt: ask(runtime, context, attempt, state))

    def wishing(attempt: Attempt) -> Awaitable[T]:
        return asked_with_reasoning(context, attempt, state, lambda wish: ask(runtime, wish, attempt, state))

    return walk(runtime, attempts, state, wishing)


async def _complete_once(
    runtime: Runtime, context: RequestContext, attempt: Attempt, state: RequestState
) -> ParsedResponse:
    request = _request_of(context, attempt, stream=False)
    needs = attempt.adapter.needs(request, attempt.credentials)
    if needs is not NOTHING:
        request = await prepared(runtime, request, needs, attempt, state)
    left = runtime.deadlines.left(state.started)
    # No timer of its own: the phases are watched by the transport, and what drips in is looked at with every piece.
    response = await _send(runtime, request, attempt, state, left)
    try:
        body = await response.read(limit=runtime.answer_bytes, until=time.monotonic() + left)
    finally:
        response.close()
    answer = attempt.adapter.parse_response(request, body)
    return answer if answer.usage is not None else with_usage(answer, len(context.body))


async def _open_once(runtime: Runtime, context: RequestContext, attempt: Attempt, state: RequestState) -> OpenStream:
    request = _request_of(context, attempt, stream=True)
    needs = attempt.adapter.needs(request, attempt.credentials)
    if needs is not NOTHING:
        request = await prepared(runtime, request, needs, attempt, state)
    translator = attempt.adapter.stream(request)
    left = runtime.deadlines.left(state.started)
    try:
        async with asyncio.timeout(min(runtime.deadlines.ttft, left)):
            response = await _send(runtime, request, attempt, state, left)
            return await _first_output(runtime, response, translator, attempt, len(context.body))
    except TimeoutError:
        raise too_slow(translator.usage) from None
    except asyncio.CancelledError:
        state.usage = translator.usage
        raise
    except ProviderError as failure:
        # What the provider counted before it failed will be on its bill.
        failure.usage = failure.usage or translator.usage
        raise


def _request_of(context: RequestContext, attempt: Attempt, *, stream: bool) -> ChatRequest:
    """What the client sent, as bytes, unless the integration sets parameters."""
    credentials = attempt.credentials
    if not credentials.sets_parameters:
        return ChatRequest(attempt.model, stream, context.body, context.fields, crosses_vendor=attempt.crosses_vendor)
    body = with_parameters(context.body, credentials)
    own = frozenset(credentials.default_parameters) | frozenset(credentials.forced_parameters)
    return ChatRequest(
        attempt.model, stream, body, LazyFields(body), crosses_vendor=attempt.crosses_vendor, own_parameters=own
    )


def too_slow(usage: Usage | None = None) -> ProviderError:
    return ProviderError("the provider did not answer in time", kind=FailureKind.TIMEOUT, usage=usage)


def too_large(most: int) -> ProviderError:
    return ProviderError(f"the provider's answer is larger than {most} bytes", kind=FailureKind.UNUSABLE)


async def _send(
    runtime: Runtime, request: ChatRequest, attempt: Attempt, state: RequestState, seconds: float
) -> UpstreamResponse:
    try:
        upstream = attempt.adapter.build_request(request, attempt.credentials)
    except RecursionError:
        raise nested_too_deeply() from None
    if attempt.credentials.adds_headers:
        upstream = with_headers(upstream, attempt.credentials, state.headers.raw)
    state.warnings = upstream.warnings
    response = await runtime.transport.send(upstream, runtime.deadlines.within(seconds))
    if 200 <= response.status < 300:
        return response
    try:
        body = await response.read(limit=_ERROR_BODY_BYTES, until=time.monotonic() + seconds)
    finally:
        response.close()
    raise attempt.adapter.classify_failure(response.status, response.headers, body)


async def _first_output(
    runtime: Runtime, response: UpstreamResponse, translator: StreamTranslator, attempt: Attempt, prompt_bytes: int
) -> OpenStream:
    """Reads until the provider has said something: until then an error can still become a status or another attempt."""
    chunks = response.chunks()
    events: list[StreamEvent] = []
    received = 0
    try:
        async for data in chunks:
            received += len(data)
            if received > runtime.answer_bytes:
                raise too_large(runtime.answer_bytes)
            fresh = translator.feed(data)
            events += fresh
            if any(event.has_output for event in fresh):
                return OpenStream(response, chunks, translator, events, ended=False, attempt=attempt, received=received)
        # No output at all. A proper end is an answer, if an empty one; `closing` raises when it was not proper.
        estimated = translator.usage is None
        if estimated:
            translator.usage = estimate(prompt_bytes, 0)
        events += _closing(translator, estimated=estimated)
    except BaseException:
        response.close()
        raise
    return OpenStream(response, chunks, translator, events, ended=True, attempt=attempt, received=received)


def _closing(translator: StreamTranslator, *, estimated: bool) -> list[StreamEvent]:
    try:
        events = translator.closing()
    except ProviderError as failure:
        if estimated:
            # The guess was for an answer. Of a failed attempt only what the provider said is taken for billed.
            translator.usage = failure.usage = None
        raise
    if not estimated or translator.finish_reason != "content_filter":
        return events
    translator.usage = Usage()
    return without_usage(events)
