"""Counts a prompt's tokens: the provider counts them if it can, and otherwise they are estimated.

A count takes part in no rollout, reserves nothing and costs nothing. It is not reported to the health monitor, since it
says little about how fast a model answers.
"""

from __future__ import annotations

import time
from typing import cast

from gateway.errors import from_provider
from gateway.pipeline.admit import admit_free
from gateway.pipeline.answer_headers import served_by
from gateway.pipeline.call import complete_once
from gateway.pipeline.callers import has_limits
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.guard_input import guard_input
from gateway.pipeline.inflight import note_in_flight
from gateway.pipeline.keeping import keeping
from gateway.pipeline.marked_documents import without_document_marks
from gateway.pipeline.native import native_counter, read_native
from gateway.pipeline.parse import parse, read_body
from gateway.pipeline.permitted import permitted
from gateway.pipeline.prompt import prompted
from gateway.pipeline.reservation import prompt_tokens
from gateway.pipeline.select import select
from gateway.pipeline.watch import ClientWatch
from gateway.protocol.reply import Reply
from gateway.protocol.wire import LazyFields
from gateway.runtime.runtime import Runtime
from gateway.snapshot.prompts import PromptUse
from gateway.surfaces.base import CountingSurface
from integrations.health.targets import CircuitState
from integrations.pricing.cost import FREE
from integrations.providers.errors import REQUEST_REFUSALS, FailureKind, ProviderError
from integrations.providers.usage import Usage

_NO_PROMPT = PromptUse()
_ESTIMATED = "the tokens are an estimate of the gateway"


async def answer_count(runtime: Runtime, state: RequestState, reply: Reply, watch: ClientWatch) -> None:
    state.body = asked_body = await read_body(watch.receive, state.headers, runtime.body_bytes)
    watch.body_arrived()
    native = read_native(state, reply)
    state.request = request = parse(state.body, state.headers, native.fields)
    state.slot = note_in_flight(runtime, state, request)
    fields = LazyFields(state.body, native.fields)
    context = RequestContext(state.snapshot, state.headers, state.body, request, fields, native)
    context = await prompted(runtime.snapshots, context, state)
    state.prompt = _NO_PROMPT
    if context.snapshot.settings.guardrails.is_on:
        context = await guard_input(context, state)
    context = without_document_marks(context)
    attempts = select(context, runtime.health, state.headers.session_id or state.request_id)
    if state.key.is_restricted:
        attempts = permitted(state.key, request.model, attempts)
    attempts = await keeping(runtime, state, asked_body, attempts)
    if has_limits(state):
        await admit_free(runtime, state)
    state.serve_from(attempts[0])
    state.routing.price, state.answer.usage = FREE, Usage()
    body = await _provider_count(runtime, context, attempts[0], state) or _estimate(context, state)
    state.answer.parts.append(body)
    watch.stop()
    reply.is_native = True
    await reply.whole(200, body, served_by(state))


async def _provider_count(
    runtime: Runtime, context: RequestContext, attempt: Attempt, state: RequestState
) -> bytes | None:
    if native_counter(context, attempt) is None:
        return None
    if runtime.health.health_of(attempt.target).circuit is CircuitState.OPEN:
        return None
    routing = state.routing
    routing.called_at = time.perf_counter()
    try:
        answer = await complete_once(runtime, context, attempt, state)
    except ProviderError as failure:
        failure.provider = failure.provider or attempt.provider
        if failure.kind in REQUEST_REFUSALS or failure.kind is FailureKind.NOT_FOUND:
            raise from_provider(failure) from failure
        return None
    state.answer.first_output = time.perf_counter()
    routing.served_seconds = state.answer.first_output - routing.called_at
    return answer.body


def _estimate(context: RequestContext, state: RequestState) -> bytes:
    state.answer.is_native = False
    state.answer.usage_estimated = True
    state.warnings = (*state.warnings, _ESTIMATED)
    return cast(CountingSurface, state.surface).count(prompt_tokens(context))
