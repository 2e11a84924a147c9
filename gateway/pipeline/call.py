"""Stage 8: one call to one provider, whole or up to the first output of a stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from django.conf import settings

from gateway.pipeline.context import Account, Attempt, RequestContext
from gateway.pipeline.estimate import estimated_tokens
from gateway.pipeline.prepare import prepared
from gateway.pipeline.walk import walk
from gateway.runtime import Runtime
from integrations.providers.base import ChatRequest, ParsedResponse, StreamEvent, StreamTranslator, Usage
from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.base import UpstreamResponse

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
    estimated: bool = False


async def complete(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], account: Account
) -> ParsedResponse:
    """The first whole answer. Raises ApplicationError when no attempt gave one."""
    return await walk(runtime, attempts, account, lambda attempt: _complete_once(runtime, context, attempt, account))


async def open_stream(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], account: Account
) -> OpenStream:
    """The first stream with real output in it (or a proper end without any). Raises ApplicationError when none has."""
    return await walk(runtime, attempts, account, lambda attempt: _open_once(runtime, context, attempt, account))


def seconds_left(account: Account) -> float:
    """Of the time that one request may take, all attempts and the whole stream included."""
    left: float = settings.UPSTREAM_TOTAL_SECONDS - (time.perf_counter() - account.started)
    return left


def too_slow(usage: Usage | None = None) -> ProviderError:
    return ProviderError("the provider did not answer in time", kind=FailureKind.TIMEOUT, usage=usage)


async def _complete_once(
    runtime: Runtime, context: RequestContext, attempt: Attempt, account: Account
) -> ParsedResponse:
    started = time.perf_counter()
    request = await prepared(runtime, _request_to(attempt, context, stream=False), attempt, account)
    try:
        async with asyncio.timeout(seconds_left(account)):
            response = await _send(runtime, request, attempt, account)
            try:
                body = await response.read(limit=settings.UPSTREAM_RESPONSE_BYTES)
            finally:
                response.close()
    except TimeoutError:
        raise too_slow() from None
    answer = attempt.adapter.parse_response(request, body)
    runtime.health.note_success(attempt.target, (time.perf_counter() - started) * 1000)
    return answer


async def _open_once(runtime: Runtime, context: RequestContext, attempt: Attempt, account: Account) -> OpenStream:
    started = time.perf_counter()
    request = await prepared(runtime, _request_to(attempt, context, stream=True), attempt, account)
    translator = attempt.adapter.stream(request)
    try:
        async with asyncio.timeout(min(settings.UPSTREAM_TTFT_SECONDS, seconds_left(account))):
            response = await _send(runtime, request, attempt, account)
            stream = await _first_output(response, translator, attempt, len(context.body))
    except TimeoutError:
        raise too_slow(translator.usage) from None
    except ProviderError as failure:
        # What the provider counted before it failed will be on its bill.
        failure.usage = failure.usage or translator.usage
        raise
    runtime.health.note_success(attempt.target, (time.perf_counter() - started) * 1000)
    return stream


def _request_to(attempt: Attempt, context: RequestContext, *, stream: bool) -> ChatRequest:
    return ChatRequest(attempt.model, stream, context.body, context.fields, attempt.is_foreign)


async def _send(runtime: Runtime, request: ChatRequest, attempt: Attempt, account: Account) -> UpstreamResponse:
    upstream = attempt.adapter.build_request(request, attempt.credentials)
    account.warnings = upstream.warnings
    response = await runtime.transport.send(upstream, runtime.timeouts)
    if 200 <= response.status < 300:
        return response
    try:
        body = await response.read(limit=_ERROR_BODY_BYTES)
    finally:
        response.close()
    raise attempt.adapter.classify_failure(response.status, response.headers, body)


async def _first_output(
    response: UpstreamResponse, translator: StreamTranslator, attempt: Attempt, prompt_bytes: int
) -> OpenStream:
    """Reads until the provider has said something: until then an error can still become a status or another attempt."""
    chunks = response.chunks()
    events: list[StreamEvent] = []
    try:
        async for data in chunks:
            fresh = translator.feed(data)
            events += fresh
            if any(event.has_output for event in fresh):
                return OpenStream(response, chunks, translator, events, ended=False, attempt=attempt)
        # No output at all. A proper end is an answer, if an empty one; `closing` raises when it was not proper.
        estimated = translator.usage is None
        if estimated:
            translator.usage = Usage(prompt_tokens=estimated_tokens(prompt_bytes))
        events += translator.closing()
    except BaseException:
        response.close()
        raise
    return OpenStream(response, chunks, translator, events, ended=True, attempt=attempt, estimated=estimated)
