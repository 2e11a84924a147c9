from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from analytics.request_log.record import CLIENT_REQUEST_ID, Outcome
from core.errors import ApplicationError
from core.http.tracebacks import class_and_place
from core.processes.draining import draining
from gateway.cache.policy import NO_CACHE, cache_policy
from gateway.errors import InternalError, ServiceRestartingError
from gateway.pipeline.admit import admit
from gateway.pipeline.answer_headers import served_by
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.cached import AnswerKeys, answer_key, look_up, replay, store
from gateway.pipeline.callers import has_limits
from gateway.pipeline.context import NO_LIMITS, Attempt, RequestContext, RequestState
from gateway.pipeline.count_tokens import answer_count
from gateway.pipeline.guard_input import guard_input, spotlit
from gateway.pipeline.inflight import note_allocation, note_in_flight
from gateway.pipeline.keeping import keeping
from gateway.pipeline.marked_documents import without_document_marks
from gateway.pipeline.native import translate
from gateway.pipeline.parse import ClientGoneError, late_body, parse, read_body
from gateway.pipeline.permitted import permitted
from gateway.pipeline.pin import named_prompt
from gateway.pipeline.prompt import messages_of, prompted, variables_of
from gateway.pipeline.rebuild import rebuilt
from gateway.pipeline.record import record
from gateway.pipeline.respond import StreamedAnswer, answer_error, whole_answer
from gateway.pipeline.select import select
from gateway.pipeline.unreadable import note_unreadable
from gateway.pipeline.watch import ClientWatch
from gateway.protocol.client_ids import valid_id
from gateway.protocol.headers import ECHOED_REQUEST_ID, RequestHeaders, read_headers
from gateway.protocol.reply import Receive, Reply
from gateway.protocol.wire import LazyFields
from gateway.runtime.runtime import Runtime
from gateway.snapshot.store import Found
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.reply import surface_of
from integrations.health.monitor import HealthMonitor
from rollouts.allocation import Variant

logger = logging.getLogger("gateway.request")


# Finds the answer that the other arm of a request's rollout would look up in the response cache.
#
# Both arms are compared only on requests that neither would have answered from the cache. That is known before the
# request's arm matters, so that both see the same questions (docs/rollouts.md).


def counterpart_key(health: HealthMonitor, state: RequestState, asked: RequestContext, first: Attempt) -> str:
    """Returns the cache key of the other arm's answer; empty if the request is in no arm, or the other would refuse it.

    `asked` is the request as the client sent it, `first` the first choice of its own arm.
    """
    use = state.prompt
    if not use.unit or use.fallback:
        return ""
    prompt = named_prompt(asked.snapshot.prompts, asked.request.prompt_config or asked.headers.prompt_config or "")
    if prompt is None or prompt.rollout is None:
        return ""
    rollout = prompt.rollout
    version = rollout.baseline if use.variant == Variant.TARGET else rollout.target
    try:
        other, _ = spotlit(rebuilt(asked, version, messages_of(prompt, version, variables_of(asked))))
        other = without_document_marks(other)
        if rollout.baseline.model != rollout.target.model or not _is_drawn(asked):
            first = _first_attempt(health, state, other)
    except ApplicationError:
        return ""
    return answer_key(other, state, first, version.number)


def _is_drawn(asked: RequestContext) -> bool:
    """True if the order of providers is drawn for each request. Both arms must then use the same draw."""
    preferences = asked.request.provider
    return preferences is not None and preferences.sort is not None


def _first_attempt(health: HealthMonitor, state: RequestState, other: RequestContext) -> Attempt:
    attempts = select(other, health, state.headers.session_id or state.request_id)
    if state.key.is_restricted:
        attempts = permitted(state.key, other.request.model, attempts)
    return attempts[0]


class Call(NamedTuple):
    answer: Callable[[Runtime, RequestState, Reply, ClientWatch], Awaitable[None]]
    body_seconds: float


class Sender(NamedTuple):
    headers: RequestHeaders
    found: Found


# nginx's status for a request whose client closed the connection: it is recorded and never sent.
_CLIENT_CLOSED = 499
# Another worker or host serves already.
_SOON = {"retry-after": "1"}


async def run(runtime: Runtime, raw_headers: list[tuple[bytes, bytes]], receive: Receive, reply: Reply) -> None:
    """Answers one request in the protocol of `reply`, and records it. Raises only an outer cancellation."""
    arrived_us, started = time.time_ns() // 1000, time.perf_counter()
    sender: Sender | None = reply.sender
    headers = read_headers(raw_headers) if sender is None else sender.headers
    client_id = valid_id(headers.client_request_id) if headers.client_request_id else ""
    if client_id:
        reply.ids.append((ECHOED_REQUEST_ID, client_id.encode()))
    try:
        snapshot, key = await authenticate(runtime.snapshots, headers) if sender is None else sender.found
    except ApplicationError as error:
        await reply.error(error)
        return
    state = RequestState(reply.request_id, arrived_us, started, snapshot, key, headers, surface=surface_of(reply))
    if client_id:
        state.attributes[CLIENT_REQUEST_ID] = client_id
    await serve(runtime, state, receive, reply)


async def serve(runtime: Runtime, state: RequestState, receive: Receive, reply: Reply) -> None:
    call: Call | None = reply.call
    body_seconds = runtime.deadlines.body if call is None else call.body_seconds
    watch = ClientWatch(receive, runtime.loop, body_seconds)
    reply.before_last = partial(record, runtime, state)
    try:
        answer = call.answer if call is not None else answer_count if state.surface.counts else _answer
        await answer(runtime, state, reply, watch)
    except ApplicationError as error:
        await _refuse(state, reply, watch, error)
    except ClientGoneError:
        _note_cancelled(state)
    except asyncio.CancelledError:
        if watch.late:
            watch.absorb()
            await _refuse(state, reply, watch, late_body(body_seconds))
            return
        if watch.disconnected:
            _note_cancelled(state)
            watch.absorb()
            return
        if not draining.is_over or state.recorded:
            state.outcome, state.status_code = Outcome.INTERRUPTED, 500
            raise
        watch.absorb()
        await _end_early(state, reply, watch)
    except Exception as error:
        logger.error("request.failed request_id=%s error=%s", state.request_id, class_and_place(error))
        failure = InternalError("The gateway failed; the failure is logged under this request's id")
        await _refuse(state, reply, watch, failure)
    finally:
        watch.stop()
        record(runtime, state)


async def _answer(runtime: Runtime, state: RequestState, reply: Reply, watch: ClientWatch) -> None:
    state.body = asked_body = await read_body(watch.receive, state.headers, runtime.body_bytes)
    watch.body_arrived()
    native = None if state.surface is CHAT else translate(state, reply)
    fields = None if native is None else native.fields
    state.request = request = parse(state.body, state.headers, fields)
    state.slot = note_in_flight(runtime, state, request)
    asked = RequestContext(state.snapshot, state.headers, state.body, request, LazyFields(state.body, fields), native)
    context = await prompted(runtime.snapshots, asked, state)
    if state.prompt.rollout_id:
        note_allocation(runtime, state, state.slot)
    if context.snapshot.settings.guardrails.is_on:
        context = await guard_input(context, state)
    context = without_document_marks(context)
    if context.snapshot.unreadable:
        note_unreadable(state, context.request)
    attempts = select(context, runtime.health, state.headers.session_id or state.request_id)
    if state.key.is_restricted:
        attempts = permitted(state.key, request.model, attempts)
    attempts = await keeping(runtime, state, asked_body, attempts)
    if state.limits is NO_LIMITS and has_limits(state):  # A plan may have admitted it.
        await admit(runtime, context, state, attempts)
    ttl = context.snapshot.settings.cache_ttl_seconds
    policy = cache_policy(context.headers.cache_control, ttl) if ttl or context.headers.cache_control else NO_CACHE
    if policy is not NO_CACHE:
        key = answer_key(context, state, attempts[0], state.prompt.version)
        counterpart = counterpart_key(runtime.health, state, asked, attempts[0]) if state.prompt.unit else ""
        cached = await look_up(runtime, state, policy, AnswerKeys(key, counterpart))
        if cached is not None:
            await replay(state, reply, cached)
            return
    if request.stream:
        await StreamedAnswer(runtime, state, reply, watch).send(context, attempts)
    else:
        body = await whole_answer(runtime, context, attempts, state)
        reply.is_native = state.answer.is_native
        await reply.whole(200, body, served_by(state))
    if state.cache.key:
        store(runtime, state)


async def _refuse(state: RequestState, reply: Reply, watch: ClientWatch, error: ApplicationError) -> None:
    state.fail(error)
    watch.stop()
    await answer_error(reply, error, state)


async def _end_early(state: RequestState, reply: Reply, watch: ClientWatch) -> None:
    error = ServiceRestartingError(headers=_SOON)
    state.fail(error)
    state.outcome = Outcome.INTERRUPTED
    watch.stop()
    await answer_error(reply, error, state)


def _note_cancelled(state: RequestState) -> None:
    state.outcome = Outcome.CANCELLED
    state.status_code = _CLIENT_CLOSED
