"""Stage 8: walks the attempts until one answers. What went wrong with each is in the account."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from django.conf import settings

from gateway.errors import from_provider
from gateway.pipeline.context import Account, Attempt, RequestContext
from gateway.pipeline.estimate import estimated_tokens
from gateway.runtime import Runtime
from gateway.wire import LazyFields
from integrations.providers.base import ChatRequest, ParsedResponse, StreamEvent, StreamTranslator, Usage
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
    estimated: bool = False


async def complete(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], account: Account
) -> ParsedResponse:
    """The first whole answer. Raises ApplicationError when no attempt gave one."""
    return await _walk(attempts, account, lambda attempt: _complete_once(runtime, context, attempt))


async def open_stream(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], account: Account
) -> OpenStream:
    """The first stream with real output in it (or a proper end without any). Raises ApplicationError when none has."""
    return await _walk(attempts, account, lambda attempt: _open_once(runtime, context, attempt))


async def _walk(attempts: list[Attempt], account: Account, call: Callable[[Attempt], Awaitable[T]]) -> T:
    last = ProviderError("no provider was tried", kind=FailureKind.UNAVAILABLE)
    for attempt in attempts:
        account.serve_from(attempt)
        started = time.perf_counter()
        try:
            result = await call(attempt)
        except ProviderError as failure:
            failure.provider = failure.provider or attempt.provider
            account.note_attempt(attempt, started, status=failure.status or 0, error=failure.kind.value)
            if failure.kind is FailureKind.REJECTED:
                raise from_provider(failure) from failure
            last = failure
        else:
            account.note_attempt(attempt, started, status=200)
            return result
    raise from_provider(last) from last


async def _send(runtime: Runtime, request: ChatRequest, attempt: Attempt) -> UpstreamResponse:
    upstream = attempt.adapter.build_request(request, attempt.credentials)
    response = await runtime.transport.send(upstream, runtime.timeouts)
    if 200 <= response.status < 300:
        return response
    try:
        body = await response.read(limit=_ERROR_BODY_BYTES)
    finally:
        response.close()
    raise attempt.adapter.classify_failure(response.status, response.headers, body)


async def _complete_once(runtime: Runtime, context: RequestContext, attempt: Attempt) -> ParsedResponse:
    request = ChatRequest(attempt.model, False, context.body, LazyFields(context.body))
    response = await _send(runtime, request, attempt)
    try:
        body = await response.read(limit=settings.UPSTREAM_RESPONSE_BYTES)
    finally:
        response.close()
    return attempt.adapter.parse_response(request, body)


async def _open_once(runtime: Runtime, context: RequestContext, attempt: Attempt) -> OpenStream:
    request = ChatRequest(attempt.model, True, context.body, LazyFields(context.body))
    response = await _send(runtime, request, attempt)
    translator = attempt.adapter.stream(request)
    chunks = response.chunks()
    try:
        return await _first_output(response, chunks, translator, len(context.body))
    except BaseException:
        response.close()
        raise


async def _first_output(
    response: UpstreamResponse, chunks: AsyncIterator[bytes], translator: StreamTranslator, prompt_bytes: int
) -> OpenStream:
    """Reads until the provider has said something: until then an error can still become a status or another attempt."""
    events: list[StreamEvent] = []
    async for data in chunks:
        fresh = translator.feed(data)
        events += fresh
        if any(event.has_output for event in fresh):
            return OpenStream(response, chunks, translator, events, ended=False)
    # No output at all. A proper end is an answer, if an empty one; `closing` raises when it was not proper.
    estimated = translator.usage is None
    if estimated:
        translator.usage = Usage(prompt_tokens=estimated_tokens(prompt_bytes))
    return OpenStream(response, chunks, translator, events + translator.closing(), ended=True, estimated=estimated)
