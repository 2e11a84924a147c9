"""The last stage: one record a request, whatever became of it."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from analytics.contracts import Attempt, Outcome, RequestRecord, SpoolEntry
from gateway.guardrails.verdicts import VERDICTS
from gateway.pipeline.admit import settle
from gateway.pipeline.context import RequestState
from gateway.pipeline.reservation import estimated_tokens
from gateway.pipeline.uncounted import estimate
from gateway.protocol.headers import trace_parent
from gateway.runtime import Runtime
from integrations.pricing.cost import Cost, known_cost
from integrations.providers.base import Usage

_MAX_ERROR_CHARACTERS = 2000
_NOTHING = f"{Cost().total:f}"


def estimated_usage(state: RequestState) -> Usage:
    """Tokens of an answer whose provider did not say, from the bytes that passed."""
    return estimate(len(state.body) + state.injected_bytes, state.output_bytes)


def record(runtime: Runtime, state: RequestState) -> None:
    """Appends the state to the spool, once. Never raises for a disk that fails."""
    if state.recorded:
        return
    state.recorded = True
    entry = _entry_of(state)
    state.record = entry.record
    runtime.spool.append(entry)
    if state.slot is not None:
        runtime.inflight.end(state.slot)
    if state.prompt.rollout_id:
        runtime.open_requests.end(state)
    if state.held is not None:
        # After the record: what is counted and not recorded would never be found out, the other way round it is.
        settle(runtime.limiter, state.held, entry.record)


def _entry_of(state: RequestState) -> SpoolEntry:
    if not state.snapshot.settings.logging.content:
        return SpoolEntry(_record_of(state))
    return SpoolEntry(_record_of(state), state.body, b"".join(state.response))


def _record_of(state: RequestState) -> RequestRecord:
    now = time.perf_counter()
    usage = _usage_of(state)
    request, first_output = state.request, state.first_output
    own_cost = known_cost(usage, state.price) if usage.is_billed else _unbilled(state)
    cost = _sum_of([own_cost if usage.is_billed else Cost(), *state.spent]) if state.spent else own_cost
    of_input, of_reads, of_writes, of_output, of_else, of_all = _texts(cost)
    made = RequestRecord(
        request_id=state.request_id,
        project_id=state.snapshot.id_text,
        ts=state.arrived_us,
        outcome=state.outcome,
        status_code=state.status_code,
        api_key_id=state.key.id,
        source=state.source,
        session_id=state.headers.session_id,
        user_id=state.headers.user_id or (request.user or "" if request is not None else ""),
        provider=state.provider,
        model=state.model,
        requested_model=request.model if request is not None else "",
        finish_reason=state.finish_reason,
        cache_status=state.cache.decode(),
        stream=request is not None and request.stream is True,
        fallback_used=state.fallback_used,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        tokens_estimated=state.usage_estimated,
        cost_known=cost is not None,
        cost_input_usd=of_input,
        cost_cache_read_usd=of_reads,
        cost_cache_write_usd=of_writes,
        cost_output_usd=of_output,
        cost_other_usd=of_else,
        cost_usd=of_all,
        cost_source=cost.source if cost is not None else "",
        latency_ms=round((now - state.started) * 1000),
        ttft_ms=round((first_output - state.started) * 1000) if first_output else 0,
        retry_count=state.retries,
        retention_days=state.snapshot.settings.logging.retention_days,
        contract_violation=state.contract_violation,
        attempts=_attempts(state, usage, of_all if cost is own_cost else _texts(own_cost)[-1]),
        attributes=_attributes(state),
    )
    seldom = _seldom(state)
    return msgspec.structs.replace(made, **seldom) if seldom else made


def _seldom(state: RequestState) -> dict[str, Any]:
    """What most records do not say: each field that is named costs its record more than those before it."""
    said: dict[str, Any] = {}
    error, prompt = state.error, state.prompt
    if error is not None:
        said |= {
            "error_type": error.type,
            "error_code": error.code,
            "error_message": error.message[:_MAX_ERROR_CHARACTERS],
        }
    if state.headers.traceparent:
        said["trace_id"], said["parent_span_id"] = trace_parent(state.headers.traceparent)
    if prompt.config_id:
        said |= {
            "prompt_config_id": prompt.config_id,
            "prompt_name": prompt.name,
            "prompt_version": prompt.version,
            "rollout_id": prompt.rollout_id,
            "rollout_stage": prompt.stage,
            "variant": prompt.variant,
            "alloc_unit": prompt.unit,
            "alloc_fallback": prompt.fallback,
        }
    return said


def _attributes(state: RequestState) -> dict[str, str]:
    if not state.verdicts:
        return state.attributes
    return {**state.attributes, VERDICTS: msgspec.json.encode(state.verdicts).decode()}


def _attempts(state: RequestState, usage: Usage, cost: str) -> tuple[Attempt, ...]:
    """The one that answered, or that the client did not wait for, comes last; it is billed for what the record says."""
    if state.served_seconds is None:
        return tuple(state.attempts)
    served = Attempt(
        state.provider,
        state.model,
        200 if state.first_output else 0,
        "" if state.outcome is Outcome.SUCCESS else state.served_error or state.outcome.value,
        int(state.served_seconds * 1000),
        usage.prompt_tokens,
        usage.completion_tokens,
        cost,
        state.offset_us(),
    )
    return (*state.attempts, served) if state.attempts else (served,)


def _unbilled(state: RequestState) -> Cost | None:
    """Nothing, unless it is not even known what the model costs."""
    return None if state.price is None else Cost()


def _texts(cost: Cost | None) -> tuple[str, str, str, str, str, str]:
    """Of input, cache reads and writes, output, all else, and the sum; empty where the cost is unknown."""
    if cost is None:
        return "", "", "", "", "", ""
    return (
        f"{cost.input:f}" if cost.input else _NOTHING,
        f"{cost.cache_read:f}" if cost.cache_read else _NOTHING,
        f"{cost.cache_write:f}" if cost.cache_write else _NOTHING,
        f"{cost.output:f}" if cost.output else _NOTHING,
        f"{cost.other:f}" if cost.other else _NOTHING,
        f"{cost.total:f}" if cost.total else _NOTHING,
    )


def _sum_of(costs: list[Cost | None]) -> Cost | None:
    """None when one of them is unknown."""
    total = Cost()
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def _usage_of(state: RequestState) -> Usage:
    """What the provider said; an estimate for output that was delivered without it; nothing for what never answered."""
    if state.usage is not None:
        state.usage_estimated = state.usage_estimated or state.usage.estimated
        return _caught_up(state, state.usage)
    if state.output_bytes or state.outcome is Outcome.SUCCESS:
        state.usage_estimated = True
        return estimated_usage(state)
    return Usage()


def _caught_up(state: RequestState, told: Usage) -> Usage:
    """Providers that count as they go (Anthropic, Bedrock, Gemini) have not counted the output of a stream that was
    cut: when it is far behind what was delivered, that is estimated."""
    if state.outcome is Outcome.SUCCESS:
        return told
    delivered = estimated_tokens(state.output_bytes)
    if told.completion_tokens * 2 >= delivered:
        return told
    state.usage_estimated = True
    # What the provider has stated so far is behind as well.
    return msgspec.structs.replace(told, completion_tokens=delivered, billed_completion_tokens=None, stated_cost=None)
