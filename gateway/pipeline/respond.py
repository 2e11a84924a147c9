"""Stage 10: the answer to the client, whole or streamed. The record is written just before the last bytes leave: what a
client has seen succeed is on disk, whenever the worker is killed."""

from __future__ import annotations

import time

from core.errors import ApplicationError
from gateway.errors import LowQualityError, from_provider
from gateway.pipeline.call import OpenStream, complete, open_stream, too_large, too_slow
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.contract import hold_stream, hold_whole, schema_of
from gateway.pipeline.failover import failure_of
from gateway.pipeline.guard_output import OutputGuard
from gateway.pipeline.heartbeat import Heartbeat
from gateway.pipeline.quality import second_try
from gateway.pipeline.record import estimated_usage, record
from gateway.pipeline.watch import ClientWatch
from gateway.protocol import headers, sse
from gateway.protocol.reply import HeaderList, Reply
from gateway.runtime import Runtime
from integrations.providers.base import ParsedResponse, StreamEvent
from integrations.providers.errors import FailureKind, ProviderError

# Proxies refuse header lines of more than some kilobytes.
_MAX_WARNING_CHARACTERS = 2000


async def answer_whole(
    runtime: Runtime, context: RequestContext, attempts: list[Attempt], state: RequestState, reply: Reply
) -> None:
    if context.snapshot.settings.guardrails.guards_output:
        body = await _guarded(runtime, context, attempts, state)
    else:
        answer = await complete(runtime, context, attempts, state)
        _note_answer(state, answer)
        body = answer.body
        state.output_bytes = len(body)
    state.response.append(body)
    schema = schema_of(context.request) if context.request.response_format is not None else None
    if schema is not None:
        await hold_whole(schema, state, body)
    record(runtime, state)
    await reply.whole(200, body, served_by(state))


async def _guarded(runtime: Runtime, context: RequestContext, attempts: list[Attempt], state: RequestState) -> bytes:
    """What may go out, of the first answer or of a second one."""

    async def once(left: list[Attempt]) -> bytes:
        answer = await complete(runtime, context, left, state)
        _note_answer(state, answer)
        body = await OutputGuard(runtime, context, state).whole(answer.body)
        state.output_bytes = len(answer.body)
        return body

    try:
        return await once(attempts)
    except LowQualityError as error:
        return await second_try(error, state, attempts, once)


def _note_answer(state: RequestState, answer: ParsedResponse) -> None:
    state.first_output = time.perf_counter()
    state.finish_reason = answer.finish_reason
    state.usage = answer.usage


async def answer_stream(
    runtime: Runtime,
    context: RequestContext,
    attempts: list[Attempt],
    state: RequestState,
    reply: Reply,
    watch: ClientWatch,
) -> None:
    async def beat() -> None:
        # After a long silence the status can wait no longer: proxies and clients give up on a mute connection.
        if not reply.started:
            await reply.start_stream(served_by(state))
        await reply.part(sse.HEARTBEAT)

    async def once(left: list[Attempt]) -> None:
        await _stream(runtime, context, left, state, reply, heartbeat, watch)

    heartbeat = Heartbeat(beat, runtime.loop)
    try:
        await once(attempts)
    except LowQualityError as error:
        await second_try(error, state, attempts, once)
    finally:
        heartbeat.stop()


async def _stream(
    runtime: Runtime,
    context: RequestContext,
    attempts: list[Attempt],
    state: RequestState,
    reply: Reply,
    heartbeat: Heartbeat,
    watch: ClientWatch,
) -> None:
    guarded = context.snapshot.settings.guardrails.guards_output
    guard = OutputGuard(runtime, context, state) if guarded else None
    try:
        stream = await open_stream(runtime, context, attempts, state)
    except Exception:
        await heartbeat.settled()
        raise
    try:
        try:
            await _relay(runtime, state, stream, reply, heartbeat, guard)
        finally:
            state.usage = stream.translator.usage  # also of a stream that the client has left
            stream.response.close()
        await _finish(runtime, context, state, stream, reply, heartbeat, watch, guard)
    except ApplicationError:
        await heartbeat.settled()
        raise


async def _relay(
    runtime: Runtime,
    state: RequestState,
    stream: OpenStream,
    reply: Reply,
    heartbeat: Heartbeat,
    guard: OutputGuard | None,
) -> None:
    """Passes events on as they come. A failure after output ends in `state`, for the last event to tell."""
    state.first_output = time.perf_counter()
    if guard is None:
        await _start(state, reply, heartbeat)
    if stream.ended:
        return
    await _pass_on(state, stream.events, reply, heartbeat, guard)
    translator, received = stream.translator, stream.received
    try:
        async for data in stream.chunks:
            received += len(data)
            if received > runtime.answer_bytes:
                raise too_large(runtime.answer_bytes)
            events = translator.feed(data)
            if events:
                await _pass_on(state, events, reply, heartbeat, guard)
            if runtime.deadlines.left(state.started) <= 0:
                raise too_slow()
        if translator.usage is None:
            translator.usage = state.usage = estimated_usage(state)
        stream.events = translator.closing()
    except (ProviderError, RecursionError) as error:
        failure = failure_of(error)
        failure.provider = failure.provider or state.provider
        state.fail(from_provider(failure))
        state.served_error = failure.kind.value
        # Its time to first output is counted: a time-out must not become another, much longer one.
        kind = FailureKind.UNAVAILABLE if failure.kind is FailureKind.TIMEOUT else failure.kind
        runtime.health.note_failure(stream.attempt.target, kind, (time.perf_counter() - state.first_output) * 1000)


async def _start(state: RequestState, reply: Reply, heartbeat: Heartbeat) -> None:
    await heartbeat.settled()
    if not reply.started:
        await reply.start_stream(served_by(state))


async def _pass_on(
    state: RequestState, events: list[StreamEvent], reply: Reply, heartbeat: Heartbeat, guard: OutputGuard | None
) -> None:
    for event in events:
        if event.has_output:
            state.output_bytes += len(event.text) or len(event.data) // 4
    if guard is not None:
        began = guard.began
        events = await guard.let_through(events)
        if not events:
            return
        if not began:
            await _start(state, reply, heartbeat)
    heartbeat.touch()
    data = sse.frame_all(events)
    state.response.append(data)
    await reply.part(data)


async def _finish(
    runtime: Runtime,
    context: RequestContext,
    state: RequestState,
    stream: OpenStream,
    reply: Reply,
    heartbeat: Heartbeat,
    watch: ClientWatch,
    guard: OutputGuard | None,
) -> None:
    if guard is not None:
        await _pass_on_rest(state, stream, reply, heartbeat, guard)
    heartbeat.stop()
    watch.stop()
    translator = stream.translator
    state.finish_reason = translator.finish_reason
    state.usage = translator.usage
    if state.error is not None:
        record(runtime, state)
        await reply.end_with_error(state.error)
        return
    schema = schema_of(context.request) if context.request.response_format is not None else None
    if schema is not None:
        stream.events = await hold_stream(schema, state, stream.events)
    last = sse.frame_all(stream.events)
    state.response.append(last)
    record(runtime, state)
    await reply.end(last + sse.DONE)


async def _pass_on_rest(
    state: RequestState, stream: OpenStream, reply: Reply, heartbeat: Heartbeat, guard: OutputGuard
) -> None:
    """What the guard holds: with the last events, or before the error that ends the stream."""
    held = await guard.last(stream.events if state.error is None else [])
    await heartbeat.settled()
    if state.error is None:
        stream.events = held
    elif held:
        await _start(state, reply, heartbeat)
        state.response.append(sse.frame_all(held))
        await reply.part(state.response[-1])
    if not reply.started:
        if state.error is not None:
            raise state.error
        await reply.start_stream(served_by(state))


async def answer_error(reply: Reply, error: ApplicationError, state: RequestState) -> None:
    """As a status, or as the terminal event when a heartbeat had to commit the status before."""
    if reply.started:
        await reply.end_with_error(error)
        return
    told: HeaderList = [(headers.RETRY_COUNT, b"%d" % state.retries)] if state.attempts else []
    if state.held is not None:
        told += state.rate_headers
    told += _prompt_served(state)
    if state.prompt_warnings:
        told.append(_warning("; ".join(state.prompt_warnings)))
    await reply.error(error, told)


def served_by(state: RequestState) -> HeaderList:
    served: HeaderList = [
        (headers.PROVIDER, state.provider.encode()),
        (headers.MODEL_USED, headers.header_value(state.model)),
        (headers.RETRY_COUNT, b"%d" % state.retries),
        (headers.CACHE, state.cache),
    ]
    if state.fallback_used and state.request is not None:
        served.append((headers.ORIGINAL_MODEL, headers.header_value(state.request.model)))
        served.append((headers.FALLBACK_USED, b"true"))
    served += state.rate_headers
    served += _prompt_served(state)
    if state.contract_violation:
        served.append((headers.CONTRACT_VIOLATION, b"true"))
    if state.warnings or state.prompt_warnings or _is_unpriced(state):
        served.append(_warning(_warnings(state)))
    return served


def _prompt_served(state: RequestState) -> HeaderList:
    """Failures say it too: whoever looks into them wants to know whether they are the target's."""
    prompt = state.prompt
    if not prompt.version:
        return []
    version = (headers.PROMPT_VERSION, b"%d" % prompt.version)
    return [version, (headers.VARIANT, prompt.variant.encode())] if prompt.variant else [version]


def _warning(text: str) -> tuple[bytes, bytes]:
    return headers.WARNING, headers.header_value(text[:_MAX_WARNING_CHARACTERS])


def _is_unpriced(state: RequestState) -> bool:
    """Of a stream it is said before the provider may state the cost."""
    return state.price is None and (state.usage is None or state.usage.stated_cost is None)


def _warnings(state: RequestState) -> str:
    warnings = [*state.prompt_warnings, *state.warnings]
    if _is_unpriced(state):
        warnings.append(f"no price is known for {state.model}: cost unknown")
    return "; ".join(warnings)
