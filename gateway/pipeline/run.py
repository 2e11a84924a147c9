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
from gateway.pipeline.context import Account, RequestContext
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
    await serve(runtime, Account(reply.request_id, arrived_us, started, snapshot, key, headers), receive, reply)


async def serve(runtime: Runtime, account: Account, receive: Receive, reply: Reply) -> None:
    """All of it but the key: for clients, and for what the service itself asks (`gateway.internal_client`)."""
    watch = ClientWatch(receive, runtime.loop, runtime.deadlines.body)
    try:
        await _answer(runtime, account, receive, reply, watch)
    except ApplicationError as error:
        await _refuse(runtime, account, reply, watch, error)
    except ClientGoneError:
        _note_cancelled(account)
    except asyncio.CancelledError:
        if watch.late:
            watch.absorb()
            await _refuse(runtime, account, reply, watch, late_body())
            return
        if not watch.disconnected:
            account.outcome, account.status_code = Outcome.INTERRUPTED, 500
            raise
        _note_cancelled(account)
        watch.absorb()
    except Exception:
        logger.exception("request.failed request_id=%s", account.request_id)
        failure = InternalError("The gateway failed; the failure is logged under this request's id")
        await _refuse(runtime, account, reply, watch, failure)
    finally:
        watch.stop()
        record(runtime, account)


async def _answer(runtime: Runtime, account: Account, receive: Receive, reply: Reply, watch: ClientWatch) -> None:
    account.body = await read_body(receive, account.headers, runtime.body_bytes)
    watch.body_arrived()
    account.request = request = parse(account.body, account.headers)
    account.slot = runtime.inflight.begin(
        account.request_id,
        account.snapshot.id_text,
        account.arrived_us,
        account.key.id,
        request.model,
        request.stream is True,
        account.headers.session_id,
        account.headers.user_id or request.user or "",
        account.snapshot.settings.logging.retention_days,
    )
    context = RequestContext(account.snapshot, account.headers, account.body, request, LazyFields(account.body))
    context = with_prompt(context, account)
    if account.prompt.rollout_id:
        note_allocation(runtime, account, account.slot)
    if context.snapshot.settings.guardrails.is_on:
        context = await guard_input(context, account)
    if context.snapshot.unreadable:
        note_unreadable(account, context.request)
    attempts = select(context, runtime.health)
    if context.snapshot.settings.limits.is_set:
        await admit(runtime, context, account, attempts)
    ttl = context.snapshot.settings.cache_ttl_seconds
    policy = cache_policy(context.headers.cache_control, ttl) if ttl or context.headers.cache_control else NO_CACHE
    if policy is not NO_CACHE:
        kept = await look_up(runtime, context, account, policy, attempts[0])
        if kept is not None:
            await answer_again(runtime, account, reply, kept, stream=request.stream is True)
            return
    if request.stream:
        await answer_stream(runtime, context, attempts, account, reply, watch)
    else:
        await answer_whole(runtime, context, attempts, account, reply)
    if account.cache_key:
        keep(runtime, account)


async def _refuse(
    runtime: Runtime, account: Account, reply: Reply, watch: ClientWatch, error: ApplicationError
) -> None:
    account.fail(error)
    watch.stop()
    record(runtime, account)
    await answer_error(reply, error, account)


def _note_cancelled(account: Account) -> None:
    account.outcome = Outcome.CANCELLED
    account.status_code = _CLIENT_CLOSED
