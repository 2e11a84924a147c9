"""Stage 6: an answer that was given before, and keeping one for the next time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from analytics.contracts import Outcome
from gateway.cache.key import cache_key
from gateway.cache.policy import CachePolicy
from gateway.cache.store import CachedAnswer
from gateway.guardrails.verdicts import GuardrailAction
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.record import record
from gateway.pipeline.respond import served_by
from gateway.protocol import sse
from gateway.protocol.reply import HeaderList, Reply
from gateway.runtime import Runtime
from integrations.pricing.cost import FREE
from integrations.providers.additions import answers_apart
from integrations.providers.base import Usage

HIT, MISS = b"hit", b"miss"

# Another try may end better.
_NOT_WORTH_KEEPING = frozenset({"", "content_filter", "error"})
# Of a replay, so that no single write holds the loop.
_EVENTS_AT_ONCE = 64


async def look_up(
    runtime: Runtime, context: RequestContext, state: RequestState, policy: CachePolicy, first: Attempt
) -> CachedAnswer | None:
    """What was kept for this request, whose first choice is `first`. `state` then knows how to keep the answer if
    there was nothing."""
    prompt = state.prompt
    key = cache_key(
        state.snapshot.id_text,
        (prompt.config_id, prompt.version),
        (*first.target, first.credentials.base_url, *answers_apart(first.credentials, state.headers.raw)),
        state.snapshot.settings,
        context.body,
        stream=context.request.stream is True,
    )
    if policy.max_age:
        found = await runtime.cache.get(key, max_age=policy.max_age)
        if found is not None:
            return found
    if not runtime.cache.is_away:
        state.cache = MISS
        state.cache_key, state.cache_ttl = key, policy.ttl
    return None


async def answer_again(
    runtime: Runtime, state: RequestState, reply: Reply, kept: CachedAnswer, *, stream: bool
) -> None:
    """Costs nothing and counts no tokens, whatever the answer's own `usage` says of the first time."""
    state.cache = HIT
    state.provider, state.model, state.finish_reason = kept.provider, kept.model, kept.finish_reason
    state.price, state.usage = FREE, Usage()
    state.first_output = time.perf_counter()
    state.response.append(kept.content)
    record(runtime, state)
    told: HeaderList = [*served_by(state), (b"age", b"%d" % max(time.time() - kept.kept_at, 0))]
    if not stream:
        await reply.whole(200, kept.content, told)
        return
    await reply.start_stream(told)
    for part in _parts(kept.content):
        await reply.part(part)
    await reply.end(sse.DONE)


def keep(runtime: Runtime, state: RequestState) -> None:
    """Puts a complete answer away, after the client has it."""
    if (
        state.outcome is not Outcome.SUCCESS
        or state.fallback_used
        or state.contract_violation
        or state.finish_reason in _NOT_WORTH_KEEPING
        # The next one may find the judge at work.
        or any(verdict.action is GuardrailAction.SKIPPED for verdict in state.verdicts)
        or not state.cache_ttl
    ):
        return
    content = b"".join(state.response)
    answer = CachedAnswer(state.provider, state.model, state.finish_reason, time.time(), content)
    runtime.cache.put(state.cache_key, answer, state.cache_ttl)


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
