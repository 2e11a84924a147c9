from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

import msgspec

from gateway.pipeline.by_responses import amended_request, by_responses
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.failover import first_answer
from gateway.pipeline.native import native_of, native_request
from gateway.pipeline.optional import without_search
from gateway.pipeline.parts import in_parts
from gateway.pipeline.prepare import fetched
from gateway.pipeline.reasoning import call_with_reasoning, note_refusal
from gateway.pipeline.replay import whole_completion
from gateway.pipeline.reservation import prompt_tokens
from gateway.pipeline.uncounted import FILTERED, completed, with_usage, without_usage
from gateway.protocol.wire import LazyFields, is_plain, nested_too_deeply
from gateway.runtime.runtime import Runtime
from integrations.providers.additions import with_headers, with_parameters
from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    Needs,
    ParsedResponse,
    StreamEvent,
    StreamTranslator,
)
from integrations.providers.common.carried import OWN_BLOCKS, carried
from integrations.providers.common.replay import chunks_of
from integrations.providers.common.search import find
from integrations.providers.errors import FailureKind, NotAStreamError, ProviderError, UnsupportedParameterError
from integrations.providers.native import NativeAdapter
from integrations.providers.usage import Usage
from integrations.transport.base import UpstreamResponse

T = TypeVar("T")
_Call = Callable[[RequestContext, Attempt], Awaitable[T]]

_ERROR_BODY_BYTES = 256 * 1024


@dataclass(slots=True)
class OpenStream:
    """A provider's stream: `events` are those read so far, the rest comes from `chunks`; `received` counts its bytes.

    If `ended`, the whole stream arrived before its first output could be sent, and `translator` is closed already.
    """

    response: UpstreamResponse
    chunks: AsyncIterator[bytes]
    translator: StreamTranslator
    attempt: Attempt
    events: list[StreamEvent] = field(default_factory=list)
    ended: bool = False
    received: int = 0

    def replay(self, answer: ParsedResponse) -> None:
        usage = answer.usage or Usage()
        self.events, self.ended = chunks_of(answer.body, usage), True
        self.translator.usage, self.translator.model = usage, answer.model
        self.translator.finish_reason = answer.finish_reason


def complete(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], state: RequestState
) -> Awaitable[ParsedResponse]:
    caller = _Caller(runtime, state)
    return caller.first_answer(context, attempts, caller.complete)


def open_stream(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], state: RequestState
) -> Awaitable[OpenStream]:
    """Returns the first stream with real output, or with a proper end and no output.

    Raises ApplicationError if no attempt gives one.
    """
    caller = _Caller(runtime, state)
    return caller.first_answer(context, attempts, caller.open_stream)


def complete_once(
    runtime: Runtime, context: RequestContext, attempt: Attempt, state: RequestState
) -> Awaitable[ParsedResponse]:
    """Calls without telling the health monitor. Raises ProviderError."""
    return _Caller(runtime, state).complete(context, attempt)


class _Caller:
    __slots__ = ("_runtime", "_state")

    def __init__(self, runtime: Runtime, state: RequestState) -> None:
        self._runtime, self._state = runtime, state

    def first_answer(self, context: RequestContext, attempts: list[Attempt], call: _Call[T]) -> Awaitable[T]:
        state = self._state
        if not context.snapshot.settings.introspection_enabled or state.surface.native_only:
            return first_answer(self._runtime, attempts, state, lambda attempt: call(context, attempt))

        def with_reasoning(attempt: Attempt) -> Awaitable[T]:
            return call_with_reasoning(context, attempt, state, lambda changed: call(changed, attempt))

        return first_answer(self._runtime, attempts, state, with_reasoning)

    async def complete(self, context: RequestContext, attempt: Attempt) -> ParsedResponse:
        request, attempt = self._request_for(context, attempt, stream=False)
        needs = attempt.adapter.needs(request, attempt.credentials)
        if needs is not NOTHING:
            request = await self._with_needs(request, needs, attempt)
        if self._state.surface.native_only:
            return await in_parts(request, attempt, self._part)
        runtime = self._runtime
        left = runtime.deadlines.left(self._state.started)
        # The call has no timer of its own: the transport watches its phases, and every piece of a slow body
        # is checked against the request's time.
        response = await self._send(request, attempt, left)
        try:
            body = await response.read(limit=runtime.answer_bytes, until=time.monotonic() + left)
        finally:
            response.close()
        answer = attempt.adapter.parse_response(request, body)
        usage = answer.usage
        if usage is not None and usage.prompt_tokens and usage.completion_tokens:
            return answer
        native = attempt.adapter if self._state.answer.is_native else None
        return with_usage(answer, prompt_tokens(context), cast("NativeAdapter | None", native))

    async def _part(self, request: ChatRequest, attempt: Attempt) -> ParsedResponse:
        """Not a step of `complete`, where one more coroutine would slow down every chat completion."""
        runtime = self._runtime
        left = runtime.deadlines.left(self._state.started)
        response = await self._send(request, attempt, left)
        try:
            body = await response.read(limit=runtime.answer_bytes, until=time.monotonic() + left)
        finally:
            response.close()
        return attempt.adapter.parse_response(request, body)

    async def open_stream(self, context: RequestContext, attempt: Attempt) -> OpenStream:
        runtime = self._runtime
        request, attempt = self._request_for(context, attempt, stream=True)
        needs = attempt.adapter.needs(request, attempt.credentials)
        if needs is not NOTHING:
            request = await self._with_needs(request, needs, attempt)
        translator = attempt.adapter.stream(request)
        left = runtime.deadlines.left(self._state.started)
        try:
            async with asyncio.timeout(min(runtime.deadlines.ttft, left)):
                response = await self._send(request, attempt, left)
                stream = OpenStream(response, response.chunks(), translator, attempt)
                await _read_first_output(stream, runtime.answer_bytes, context)
                return stream
        except NotAStreamError as found:
            stream.replay(whole_completion(attempt.adapter, request, found, self._state))
            return stream
        except TimeoutError:
            raise too_slow(translator.usage) from None
        except asyncio.CancelledError:
            usage = translator.usage
            self._state.answer.usage = usage if usage is not None and usage.is_billed else None
            raise
        except ProviderError as failure:
            # Tokens that the provider counted before it failed will be on its bill.
            failure.usage = failure.usage or translator.usage
            raise

    def _request_for(self, context: RequestContext, attempt: Attempt, *, stream: bool) -> tuple[ChatRequest, Attempt]:
        adapter = None
        if context.native is not None:
            adapter = native_of(context, attempt)
            self._state.answer.is_native = adapter is not None
        if adapter is None:
            request = _request_of(context, attempt, stream)
            if find(request.body, OWN_BLOCKS) >= 0:
                knows = request.model.startswith(attempt.adapter.traits.claude_blocks)
                request = request if knows else carried(request)
            if request.is_translated or request.crosses_vendor or context.snapshot.settings.openai_responses_for_tools:
                attempt = by_responses(request, attempt)
            return request, attempt
        request = native_request(context, attempt, adapter, stream=stream)
        return request, msgspec.structs.replace(attempt, adapter=adapter)

    async def _with_needs(self, request: ChatRequest, needs: Needs, attempt: Attempt) -> ChatRequest:
        media, token = await fetched(self._runtime, needs, attempt, self._state)
        return msgspec.structs.replace(request, media=media, access_token=token)

    async def _send(self, request: ChatRequest, attempt: Attempt, seconds: float) -> UpstreamResponse:
        try:
            upstream = attempt.adapter.build_request(request, attempt.credentials)
        except UnsupportedParameterError as refused:
            request = without_search(request, refused)
            upstream = attempt.adapter.build_request(request, attempt.credentials)
        except RecursionError:
            raise nested_too_deeply() from None
        if attempt.credentials.adds_headers:
            upstream = with_headers(upstream, attempt.credentials, self._state.headers.raw)
        self._state.routing.attempt_warnings = upstream.warnings + request.warnings
        response = await self._runtime.transport.send(
            upstream, self._runtime.deadlines.within(seconds), self._state.routing
        )
        if 200 <= response.status < 300:
            return response
        try:
            body = await response.read(limit=_ERROR_BODY_BYTES, until=time.monotonic() + seconds)
        finally:
            response.close()
        failure = attempt.adapter.classify_failure(response.status, response.headers, body)
        amended = amended_request(request, attempt, failure)
        if amended is None:
            raise failure
        note_refusal(self._state, attempt, failure, response.status)
        return await self._send(amended, attempt, self._runtime.deadlines.left(self._state.started))


def _request_of(context: RequestContext, attempt: Attempt, stream: bool) -> ChatRequest:
    credentials, model, native = attempt.credentials, attempt.sent_model or attempt.model, context.native
    known_as = attempt.model if attempt.sent_model else ""
    is_translated, warnings = (False, ()) if native is None else (native.is_translated, native.warnings)
    if not credentials.sets_parameters:
        return ChatRequest(
            model,
            stream,
            context.body,
            context.fields,
            crosses_vendor=attempt.crosses_vendor,
            max_output=attempt.max_output,
            cache_markers=context.snapshot.settings.prompt_cache_markers,
            is_plain=context.request.model == model
            and (native is None or native.is_plain or not is_translated)
            and is_plain(context.request, context.body),
            is_translated=is_translated,
            warnings=warnings,
            known_as=known_as,
        )
    body = with_parameters(context.body, credentials)
    own = frozenset(credentials.default_parameters) | frozenset(credentials.forced_parameters)
    return ChatRequest(
        model,
        stream,
        body,
        LazyFields(body),
        crosses_vendor=attempt.crosses_vendor,
        own_parameters=own,
        max_output=attempt.max_output,
        cache_markers=context.snapshot.settings.prompt_cache_markers,
        is_translated=is_translated,
        warnings=warnings,
        known_as=known_as,
    )


def too_slow(usage: Usage | None = None) -> ProviderError:
    return ProviderError("the provider did not answer in time", kind=FailureKind.TIMEOUT, usage=usage)


def too_large(limit: int) -> ProviderError:
    return ProviderError(f"the provider's answer is larger than {limit} bytes", kind=FailureKind.UNUSABLE)


async def _read_first_output(stream: OpenStream, limit: int, context: RequestContext) -> None:
    """Reads until the provider has sent output: until then an error can still become a status or another attempt.

    `limit` is in bytes; `context` serves to estimate the usage. Closes the response when it raises.
    """
    translator = stream.translator
    try:
        async for data in stream.chunks:
            stream.received += len(data)
            if stream.received > limit:
                raise too_large(limit)
            fresh = translator.feed(data)
            stream.events += fresh
            if any(event.has_output for event in fresh):
                return
        # A proper end without output is an answer, if an empty one; `closing` raises when the end was not proper.
        stream.ended = True
        estimated = translator.usage is None
        if estimated:
            translator.usage = completed(None, prompt_tokens(context), 0)
        stream.events += _closing(translator, estimated=estimated)
    except BaseException:
        stream.response.close()
        raise


def _closing(translator: StreamTranslator, *, estimated: bool) -> list[StreamEvent]:
    try:
        events = translator.closing()
    except ProviderError as failure:
        if estimated:
            # The estimate is for an answer. A failed attempt is billed only for tokens that the provider counted.
            translator.usage = failure.usage = None
        raise
    if not estimated or translator.finish_reason != FILTERED or not events:
        return events
    translator.usage = Usage()
    return without_usage(events)
