"""Stage 10: the answer to the client, whole or streamed.

The record is written just before the last bytes leave (`Reply.before_last`): an answer that a client has seen succeed
is on disk, whenever the worker is killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import msgspec

from core.errors import ApplicationError
from gateway.errors import LowQualityError, from_provider
from gateway.pipeline.answer_headers import error_headers, served_by
from gateway.pipeline.answered import note_answered
from gateway.pipeline.call import OpenStream, complete, open_stream, too_large, too_slow
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.contract import check_schema, check_schema_of_stream, schema_of
from gateway.pipeline.failover import failure_of
from gateway.pipeline.guard_output import OutputGuard
from gateway.pipeline.heartbeat import Heartbeat
from gateway.pipeline.native import as_chat_completion
from gateway.pipeline.quality import second_try
from gateway.pipeline.record import completed_usage, estimated_prompt
from gateway.pipeline.uncounted import FILTERED
from gateway.pipeline.watch import ClientWatch
from gateway.protocol import sse
from gateway.protocol.reply import Reply
from gateway.runtime.runtime import Runtime
from integrations.providers.base import ParsedResponse, StreamEvent
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage


async def whole_answer(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], state: RequestState
) -> bytes:
    if context.snapshot.settings.guardrails.guards_output and not state.surface.native_only:
        body = await _guarded(runtime, context, attempts, state)
    else:
        completion = await complete(runtime, context, attempts, state)
        _note_completion(state, completion)
        body = completion.body
        state.answer.output_bytes = len(body)
    state.answer.parts.append(body)
    schema = schema_of(context.request) if context.request.response_format is not None else None
    if schema is not None:
        await check_schema(schema, state, _as_chat(state, body))
    return body


async def _guarded(runtime: Runtime, context: RequestContext, attempts: list[Attempt], state: RequestState) -> bytes:
    async def once(left: list[Attempt]) -> bytes:
        completion = await complete(runtime, context, left, state)
        _note_completion(state, completion)
        body = await OutputGuard(runtime, context, state).whole(completion.body)
        state.answer.output_bytes = len(completion.body)
        return body

    try:
        return await once(attempts)
    except LowQualityError as error:
        return await second_try(error, state, attempts, once)


def _as_chat(state: RequestState, body: bytes) -> bytes:
    return as_chat_completion(state, body, stream=False) if state.answer.is_native else body


def _note_completion(state: RequestState, completion: ParsedResponse) -> None:
    answer = state.answer
    answer.first_output = time.perf_counter()
    answer.finish_reason = completion.finish_reason
    answer.usage = completion.usage
    note_answered(state, completion.model)
    answer.recorded, answer.given = completion.recorded, completion.given
    if completion.usage is None:
        # What such an operation costs is not counted in tokens, and the price list has no other units.
        answer.usage, state.routing.price = Usage(), None


class StreamedAnswer:
    __slots__ = (
        "_answer",
        "_ends_at",
        "_framed",
        "_guard",
        "_heartbeat",
        "_loop",
        "_max_bytes",
        "_plain",
        "_reply",
        "_runtime",
        "_state",
        "_stream",
        "_total",
        "_watch",
        "_write_piece",
    )

    def __init__(self, runtime: Runtime, state: RequestState, reply: Reply, watch: ClientWatch) -> None:
        self._runtime, self._state, self._reply, self._watch = runtime, state, reply, watch
        self._answer = state.answer
        self._total = runtime.deadlines.total
        self._max_bytes = runtime.answer_bytes
        self._loop = runtime.loop
        # `_relay` sets these; `_ends_at` is a time of the loop.
        self._stream: OpenStream
        self._plain: Callable[[bytes], str]
        self._ends_at: float
        self._write_piece: Callable[[bytes], bool]
        self._framed: Callable[[list[StreamEvent]], bytes] = sse.frame_all
        self._guard: OutputGuard | None = None
        # The heartbeat calls no method of this object: a cycle of the two would wait for the garbage collector.
        self._heartbeat = Heartbeat(partial(_beat, state, reply), runtime.loop)

    async def send(self, context: RequestContext, attempts: list[Attempt]) -> None:
        """Sends the first stream that has output, or a second one if the first was graded too low.

        Raises ApplicationError for a failure before the stream's first event; a later one ends the stream.
        """

        async def once(left: list[Attempt]) -> None:
            await self._send(context, left)

        try:
            await once(attempts)
        except LowQualityError as error:
            await second_try(error, self._state, attempts, once)
        finally:
            self._heartbeat.stop()

    async def _send(self, context: RequestContext, attempts: list[Attempt]) -> None:
        # A second try has an AnswerState of its own.
        self._answer = self._state.answer
        guarded = context.snapshot.settings.guardrails.guards_output
        self._guard = OutputGuard(self._runtime, context, self._state) if guarded else None
        try:
            stream = await open_stream(self._runtime, context, attempts, self._state)
        except Exception:
            await self._heartbeat.settled()
            raise
        if self._reply.request is not None and not self._answer.is_native:
            tokens = estimated_prompt(self._state)
            self._reply.request = msgspec.structs.replace(self._reply.request, prompt_tokens=tokens)
        try:
            try:
                await self._relay(stream)
            finally:
                # The usage is noted even when the client has left the stream.
                self._answer.usage, self._answer.given = stream.translator.usage, stream.translator.given
                note_answered(self._state, stream.translator.model)
                stream.response.close()
            await self._finish(context, stream)
        except ApplicationError:
            await self._heartbeat.settled()
            raise

    async def _relay(self, stream: OpenStream) -> None:
        self._answer.first_output = time.perf_counter()
        self._framed = sse.relay_all if self._answer.is_native else sse.frame_all
        if self._guard is None:
            await self._start()
        if stream.ended:
            return
        await self._pass_on(stream.events)
        translator = stream.translator
        self._stream, self._write_piece = stream, self._reply.piece_writer()
        self._plain = translator.plain
        self._ends_at = self._loop.time() + self._total - (time.perf_counter() - self._state.started)
        take = self._take_plain if translator.has_plain and self._guard is None else self._take
        try:
            while not await stream.response.deliver(take):
                await self._pass_on(stream.events)
                self._check_time()
            usage = translator.usage
            if usage is None or not (
                (usage.prompt_tokens and usage.completion_tokens) or translator.finish_reason == FILTERED
            ):
                translator.usage = self._answer.usage = completed_usage(self._state, usage)
            stream.events = translator.closing()
        except (ProviderError, RecursionError) as error:
            self._note_break(failure_of(error), stream.attempt)

    def _take_plain(self, data: bytes) -> bool:
        """The fast path of `_take`: a chunk that only adds text leaves as it came, and no object is made of it."""
        text, now, stream, answer = self._plain(data), self._loop.time(), self._stream, self._answer
        received = stream.received + len(data)
        if not text or received > self._max_bytes or now >= self._ends_at or not self._write_piece(data):
            return self._take(data)
        stream.received = received
        answer.output_bytes += len(text)
        answer.parts.append(data)
        self._heartbeat.last = now
        return True

    def _take(self, data: bytes) -> bool:
        """Forwards what has arrived. Returns False if `_stream.events` have to wait for a guardrail or the client.

        Raises ProviderError. The transport calls this once for everything that it has read: waking a task for each
        read, through all the coroutines of a request, costs more than the rest. So does any unneeded function call
        between two system calls.
        """
        stream, answer = self._stream, self._answer
        stream.received += len(data)
        if stream.received > self._max_bytes:
            raise too_large(self._max_bytes)
        events = stream.translator.feed(data)
        if events:
            if self._guard is not None or not self._write_piece(framed := self._framed(events)):
                stream.events = events
                return False
            for event in events:
                if event.has_output:
                    answer.output_bytes += len(event.text) or len(event.data) // 4
            self._heartbeat.last = self._loop.time()
            answer.parts.append(framed)
        if time.perf_counter() - self._state.started >= self._total:
            raise too_slow()
        return True

    def _check_time(self) -> None:
        if time.perf_counter() - self._state.started >= self._total:
            raise too_slow()

    def _count_output(self, events: list[StreamEvent]) -> None:
        answer = self._answer
        for event in events:
            if event.has_output:
                answer.output_bytes += len(event.text) or len(event.data) // 4

    def _note_break(self, failure: ProviderError, attempt: Attempt) -> None:
        state = self._state
        failure.provider = failure.provider or state.routing.provider
        state.fail(from_provider(failure))
        state.routing.stream_error = failure.kind.value
        # The health monitor gets the time to first output: a time-out must not count as another, much longer one.
        kind = FailureKind.UNAVAILABLE if failure.kind is FailureKind.TIMEOUT else failure.kind
        seconds = time.perf_counter() - self._answer.first_output
        self._runtime.health.note_failure(attempt.target, kind, seconds * 1000)

    async def _start(self) -> None:
        await self._heartbeat.settled()
        self._reply.is_native = self._answer.is_native
        if not self._reply.started:
            await self._reply.start_stream(served_by(self._state))

    async def _pass_on(self, events: list[StreamEvent]) -> None:
        answer, guard = self._answer, self._guard
        self._count_output(events)
        if guard is not None:
            began = guard.began
            events = await guard.let_through(events)
            if not events:
                return
            if not began:
                await self._start()
        self._heartbeat.touch()
        data = self._framed(events)
        answer.parts.append(data)
        await self._reply.part(data)

    async def _finish(self, context: RequestContext, stream: OpenStream) -> None:
        state, answer = self._state, self._answer
        if self._guard is not None:
            await self._pass_on_rest(stream, self._guard)
        self._heartbeat.stop()
        self._watch.stop()
        answer.finish_reason = stream.translator.finish_reason
        answer.usage = stream.translator.usage
        if state.error is not None:
            await self._reply.end_with_error(state.error, answer.parts)
            return
        schema = schema_of(context.request) if context.request.response_format is not None else None
        if schema is not None:
            await self._check(schema, stream)
        last = self._framed(stream.events)
        answer.parts.append(last)
        await self._reply.end(last)

    async def _check(self, schema: bytes, stream: OpenStream) -> None:
        if self._answer.is_native:
            events = b"".join(self._answer.parts) + sse.relay_all(stream.events)
            await check_schema(schema, self._state, as_chat_completion(self._state, events, stream=True))
        else:
            stream.events = await check_schema_of_stream(schema, self._state, stream.events)

    async def _pass_on_rest(self, stream: OpenStream, guard: OutputGuard) -> None:
        state, reply = self._state, self._reply
        held = await guard.last(stream.events if state.error is None else [])
        await self._heartbeat.settled()
        if state.error is None:
            stream.events = held
        elif held:
            await self._start()
            self._answer.parts.append(sse.frame_all(held))
            await reply.part(self._answer.parts[-1])
        if not reply.started:
            if state.error is not None:
                raise state.error
            await reply.start_stream(served_by(state))


async def _beat(state: RequestState, reply: Reply) -> None:
    # After a long silence the status can wait no longer: proxies and clients give up on a mute connection.
    if not reply.started:
        await reply.start_stream(served_by(state))
    await reply.part(sse.HEARTBEAT)


async def answer_error(reply: Reply, error: ApplicationError, state: RequestState) -> None:
    """Sends the error as a status, or as the terminal event if a heartbeat had to commit the status before."""
    if reply.started:
        await reply.end_with_error(error, state.answer.parts)
    else:
        await reply.error(error, error_headers(state))
