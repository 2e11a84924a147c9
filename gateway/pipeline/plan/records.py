from __future__ import annotations

from typing import Final, Protocol

from msgspec.structs import force_setattr, replace

from analytics.request_log.record import CLIENT_REQUEST_ID, AttemptRecord, RequestRecord
from gateway.pipeline.context import RequestState
from gateway.pipeline.plan.plans import Plan
from gateway.pipeline.record import cost_texts, prompted_fields
from gateway.protocol.headers import RequestHeaders, trace_parent
from integrations.pricing.cost import Price, known_cost
from integrations.providers.base import ParsedResponse
from integrations.providers.usage import Usage

_NO_USAGE: Final = Usage()


class Exchanged(Protocol):
    plan: Plan
    request_id: str
    arrived_us: int
    started: float
    called_at: float
    headers: RequestHeaders
    user_id: str
    client_id: str


def record_of(exchange: Exchanged, answer: ParsedResponse, now: float) -> RequestRecord:
    plan, usage, latency = exchange.plan, answer.usage or _NO_USAGE, round((now - exchange.started) * 1000)
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    texts = None
    if plan.units is not None and usage == Usage(prompt, completion):
        texts = plan.units.texts(prompt, completion)
    of_input, of_output, of_all = texts or ("", "", "")
    made = replace(
        plan.record,
        request_id=exchange.request_id,
        ts=exchange.arrived_us,
        session_id=exchange.headers.session_id,
        user_id=exchange.user_id,
        finish_reason=answer.finish_reason,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost_input_usd=of_input,
        cost_output_usd=of_output,
        cost_usd=of_all,
        latency_ms=latency,
        ttft_ms=latency,
        attempts=(
            AttemptRecord(
                plan.attempt.provider,
                plan.attempt.model,
                200,
                "",
                int((now - exchange.called_at) * 1000),
                prompt,
                completion,
                of_all,
                int((exchange.called_at - exchange.started) * 1_000_000),
                plan.attempt.deployment,
            ),
        ),
    )
    if texts is None:
        _add_cost(made, usage, plan.price)
    if exchange.client_id:
        force_setattr(made, "attributes", {CLIENT_REQUEST_ID: exchange.client_id, **plan.record.attributes})
    if exchange.headers.traceparent:
        trace_id, span_id = trace_parent(exchange.headers.traceparent)
        force_setattr(made, "trace_id", trace_id)
        force_setattr(made, "parent_span_id", span_id)
    return made


def add_prompt(made: RequestRecord, state: RequestState, plan: Plan, body: bytes) -> None:
    state.answer.parts.append(body)
    state.answer.is_native, state.routing.provider = plan.is_native, plan.attempt.provider
    for name, value in prompted_fields(state).items():
        force_setattr(made, name, value)


def _add_cost(made: RequestRecord, usage: Usage, price: Price | None) -> None:
    cost = known_cost(usage, price)
    of_input, of_reads, of_writes, of_output, of_else, of_all = cost_texts(cost)
    fields = {
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost_known": cost is not None,
        "cost_source": cost.source if cost is not None else "",
        "cost_input_usd": of_input,
        "cost_cache_read_usd": of_reads,
        "cost_cache_write_usd": of_writes,
        "cost_output_usd": of_output,
        "cost_other_usd": of_else,
        "cost_usd": of_all,
        "attempts": (replace(made.attempts[0], cost_usd=of_all),),
    }
    for name, value in fields.items():
        force_setattr(made, name, value)
