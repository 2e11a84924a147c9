from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from typing import NamedTuple

from analytics.request_log.record import Outcome
from gateway.cache.key import cache_key
from gateway.cache.policy import CachePolicy
from gateway.cache.store import CachedAnswer
from gateway.guardrails.verdicts import GuardrailAction
from gateway.pipeline.answer_headers import served_by
from gateway.pipeline.context import Attempt, CacheUse, RequestContext, RequestState
from gateway.pipeline.inflight import note_question_cached
from gateway.pipeline.native import FORM
from gateway.protocol.reply import HeaderList, Reply
from gateway.runtime.runtime import Runtime
from integrations.pricing.cost import FREE
from integrations.providers.additions import answers_apart
from integrations.providers.usage import Usage

HIT, MISS = b"hit", b"miss"

# An answer with one of these finish reasons is not stored: the next try may end better.
_NOT_WORTH_STORING = frozenset({"", "content_filter", "error"})
# A replay is written in pieces, so that no single write blocks the loop.
_EVENTS_AT_ONCE = 64


class AnswerKeys(NamedTuple):
    own: str
    counterpart: str


def answer_key(context: RequestContext, state: RequestState, first: Attempt, version: int) -> str:
    return cache_key(
        state.snapshot.id_text,
        (state.prompt.config_id, version),
        (
            state.surface.name,
            *first.target,
            first.credentials.base_url,
            *answers_apart(first.credentials, state.headers.raw),
        ),
        state.snapshot.settings,
        _cached_body(context),
        stream=context.request.stream is True,
    )


async def look_up(runtime: Runtime, state: RequestState, policy: CachePolicy, keys: AnswerKeys) -> CachedAnswer | None:
    found: CachedAnswer | None = None
    other: CachedAnswer | None = None
    if policy.max_age:
        if keys.counterpart:
            found, other = await runtime.cache.get_both(keys.own, keys.counterpart, max_age=policy.max_age)
        else:
            found = await runtime.cache.get(keys.own, max_age=policy.max_age)
        if found is not None:
            return found
    if not runtime.cache.is_away:
        state.cache = CacheUse(MISS, keys.own, policy.ttl, question_cached=other is not None)
    if other is not None:
        note_question_cached(runtime, state)
    return None


async def replay(state: RequestState, reply: Reply, cached: CachedAnswer) -> None:
    """A replayed answer costs nothing and counts no tokens, whatever its own `usage` says."""
    routing, answer = state.routing, state.answer
    state.cache = CacheUse(HIT, question_cached=bool(state.prompt.rollout_id))
    routing.provider, routing.model, answer.finish_reason = cached.provider, cached.model, cached.finish_reason
    routing.price, answer.usage = FREE, Usage()
    answer.first_output = time.perf_counter()
    answer.parts.append(cached.content)
    answer.is_native = reply.is_native = cached.is_native
    if state.surface.native_only:
        answer.recorded = b""
    reply.settle()
    headers: HeaderList = [*served_by(state), (b"age", b"%d" % max(time.time() - cached.kept_at, 0))]
    if state.request is None or not state.request.stream:
        await reply.whole(200, cached.content, headers)
        return
    await reply.start_stream(headers)
    for part in _parts(cached.content):
        await reply.part(part)
    await reply.end(b"")


def store(runtime: Runtime, state: RequestState) -> None:
    routing, answer = state.routing, state.answer
    if (
        state.outcome is not Outcome.SUCCESS
        or routing.fallback_used
        or answer.contract_violation
        or (answer.finish_reason in _NOT_WORTH_STORING and not state.surface.native_only)
        # The judge was away: it may be there for the next request.
        or any(verdict.action is GuardrailAction.SKIPPED for verdict in state.verdicts)
        or not state.cache.ttl
    ):
        return
    content = b"".join(answer.parts)
    cached = CachedAnswer(routing.provider, routing.model, answer.finish_reason, time.time(), content, answer.is_native)
    runtime.cache.put(state.cache.key, cached, state.cache.ttl)


def _cached_body(context: RequestContext) -> bytes:
    """The client's own body tells requests apart: a chat completion may hold less of it."""
    native = context.native
    if native is None or native.body is None:
        return context.body
    return _of_form(native.body) if native.body.startswith(FORM) else native.body


def _of_form(body: bytes) -> bytes:
    content = body.replace(body[: body.find(b"\r\n")], b"")
    return b'{"form":"%b"}' % hashlib.blake2b(content).hexdigest().encode()


def _parts(events: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(events):
        end = start
        for _ in range(_EVENTS_AT_ONCE):
            found = events.find(b"\n\n", end)
            end = len(events) if found < 0 else found + 2
            if end >= len(events):
                break
        yield events[start:end]
        start = end
