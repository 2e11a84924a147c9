"""The stages of a chat completion, in order (design, section 4)."""

from __future__ import annotations

import asyncio
import logging
import time

from analytics.contracts import Outcome
from core.errors import ApplicationError
from gateway.cache.policy import NO_CACHE, cache_policy
from gateway.errors import InternalError
from gateway.pipeline.admit import admit
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.cached import answer_again, keep, look_up
from gateway.pipeline.context import RequestContext, RequestState
from gateway.pipeline.guard_input import guard_input
from gateway.pipeline.parse import ClientGoneError, late_body, parse, read_body
from gateway.pipeline.prompt import with_prompt
from gateway.pipeline.record import record
from gateway.pipeline.respond import answer_error, answer_stream, answer_whole
from gateway.pipeline.select import select
from gateway.pipeline.under_way import note_allocation
from gateway.pipeline.unreadable import note_unreadable
from gateway.pipeline.watch import ClientWatch
from gateway.protocol.headers import read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import Receive, Reply, Send
from gateway.protocol.wire import LazyFields
from gateway.runtime import Runtime

logger = logging.getLogger("gateway.request")

# nginx's status for a client that closed the connection; nobody receives it, it is what the record says.
_CLIENT_CLOSED = 499


async def run(runtime: Runtime, raw_headers: list[tuple[bytes, bytes]], receive: Receive, send: Send) -> None:
    """Answers one request and records it. Never raises but for a cancellation from outside."""
    arrived_us, started = time.time_ns() // 1000, time.perf_counter()
    reply = Reply(send, new_request_id())
    headers = read_headers(raw_headers)
    try:
        snapshot, key = await authenticate(runtime.snapshots, headers)
    except ApplicationError as error:
        await reply.error(error)
        return
    await serve(runtime, RequestState(reply.request_id, arrived_us, started, snapshot, key, headers), receive, reply)


async def serve(runtime: Runtime, state: RequestState, receive: Receive, reply: Reply) -> None:
    """All of it but the key: for clients, and for what the service itself asks (`gateway.internal_client`)."""
    watch = ClientWatch(receive, runtime.loop, runtime.deadlines.body)
    try:
        await _answer(runtime, state, receive, reply, watch)
    except ApplicationError as error:
        await _refuse(runtime, state, reply, watch, error)
    except ClientGoneError:
        _note_cancelled(state)
    except asyncio.CancelledError:
        if watch.late:
            watch.absorb()
            await _refuse(runtime, state, reply, watch, late_body())
            return
        if not watch.disconnected:
            state.outcome, state.status_code = Outcome.INTERRUPTED, 500
            raise
        _note_cancelled(state)
        watch.absorb()
    except Exception:
        logger.exception("request.failed request_id=%s", state.request_id)
        failure = InternalError("The gateway failed; the failure is logged under this request's id")
        await _refuse(runtime, state, reply, watch, failure)
    finally:
        watch.stop()
        record(runtime, state)


async def _answer(runtime: Runtime, state: RequestState, receive: Receive, reply: Reply, watch: ClientWatch) -> None:
    state.body = await read_body(receive, state.headers, runtime.body_bytes)
    watch.body_arrived()
    state.request = request = parse(state.body, state.headers)
    state.slot = runtime.inflight.begin(
        state.request_id,
        state.snapshot.id_text,
        state.arrived_us,
        state.key.id,
        request.model,
        request.stream is True,
        state.headers.session_id,
        state.headers.user_id or request.user or "",
        state.snapshot.settings.logging.retention_days,
    )
    context = RequestContext(state.snapshot, state.headers, state.body, request, LazyFields(state.body))
    context = with_prompt(context, state)
    if state.prompt.rollout_id:
        note_allocation(runtime, state, state.slot)
    if context.snapshot.settings.guardrails.is_on:
        context = await guard_input(context, state)
    if context.snapshot.unreadable:
        note_unreadable(state, context.request)
    attempts = select(context, runtime.health)
    if context.snapshot.settings.limits.is_set:
        await admit(runtime, context, state, attempts)
    ttl = context.snapshot.settings.cache_ttl_seconds
    policy = cache_policy(context.headers.cache_control, ttl) if ttl or context.headers.cache_control else NO_CACHE
    if policy is not NO_CACHE:
        kept = await look_up(runtime, context, state, policy, attempts[0])
        if kept is not None:
            await answer_again(runtime, state, reply, kept, stream=request.stream is True)
            return
    if request.stream:
        await answer_stream(runtime, context, attempts, state, reply, watch)
    else:
        await answer_whole(runtime, context, attempts, state, reply)
    if state.cache_key:
        keep(runtime, state)


async def _refuse(
    runtime: Runtime, state: RequestState, reply: Reply, watch: ClientWatch, error: ApplicationError
) -> None:
    state.fail(error)
    watch.stop()
    record(runtime, state)
    await answer_error(reply, error, state)


def _note_cancelled(state: RequestState) -> None:
    state.outcome = Outcome.CANCELLED
    state.status_code = _CLIENT_CLOSED
