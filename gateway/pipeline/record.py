from __future__ import annotations

import hashlib
import time
from typing import Any
from uuid import UUID

import msgspec

from analytics.request_log.record import AttemptRecord, Outcome, RequestRecord, SpoolEntry
from gateway.guardrails.verdicts import VERDICTS
from gateway.pipeline.admit import settle
from gateway.pipeline.callers import user_of
from gateway.pipeline.context import RequestState
from gateway.pipeline.emptiness import is_empty
from gateway.pipeline.language import language_of
from gateway.pipeline.reservation import tokens_of_prompt
from gateway.pipeline.uncounted import completed
from gateway.protocol.headers import trace_parent
from gateway.runtime.runtime import Runtime
from gateway.surfaces.chat.surface import CHAT
from integrations.pricing.cost import Cost, known_cost, summed_cost
from integrations.providers.usage import Usage, estimated_tokens

_MAX_ERROR_CHARACTERS = 2000
_NOTHING = f"{Cost().total:f}"


def completed_usage(state: RequestState, stated: Usage | None) -> Usage:
    return completed(stated, estimated_prompt(state), state.answer.output_bytes)


def estimated_prompt(state: RequestState) -> int:
    request = state.request
    own = estimated_tokens(len(state.body)) if request is None else tokens_of_prompt(state.body, request)
    return own + estimated_tokens(state.injected_bytes)


def record(runtime: Runtime, state: RequestState) -> None:
    """Appends the request's record to the spool, once. A disk that fails raises nothing."""
    if state.recorded:
        return
    state.recorded = True
    entry = _entry_of(state)
    state.record = entry.record
    runtime.spool.append(entry)
    number = state.routing.limited_id
    if number is not None and state.routing.served_seconds is not None:
        # The call has counted the estimated prompt already.
        tokens = entry.record.prompt_tokens + entry.record.completion_tokens
        runtime.health.use.note(number, tokens=tokens - estimated_tokens(len(state.body)))
    if state.slot is not None:
        runtime.inflight.end(state.slot)
    if state.answer.given:
        _note_given(runtime, state)
    if state.prompt.rollout_id:
        runtime.open_requests.end(state)
    if state.limits.reservation is not None:
        # The record comes first: a worker that dies in between leaves a record without a count, which is
        # noticed, and never a count without a record.
        settle(runtime.limiter, state.limits.reservation, entry.record)


def _note_given(runtime: Runtime, state: RequestState) -> None:
    credentials = state.routing.credentials
    if credentials is not None and not credentials.own_account:
        runtime.kept_ids.note(state.snapshot.id_text, credentials.integration_id, state.answer.given)


def _entry_of(state: RequestState) -> SpoolEntry:
    if not state.snapshot.settings.log_content:
        return SpoolEntry(record_of(state))
    recorded = state.answer.recorded
    return SpoolEntry(record_of(state), state.body, b"".join(state.answer.parts) if recorded is None else recorded)


def record_of(state: RequestState) -> RequestRecord:
    now = time.perf_counter()
    usage = _usage_of(state)
    request, routing, answer = state.request, state.routing, state.answer
    own_cost = known_cost(usage, routing.price, state.price_of) if usage.is_billed else _unbilled(state)
    failed_costs = routing.failed_costs
    cost = summed_cost([own_cost if usage.is_billed else Cost(), *failed_costs]) if failed_costs else own_cost
    if usage.parts:
        usage = usage.in_all
    of_input, of_reads, of_writes, of_output, of_else, of_all = cost_texts(cost)
    made = RequestRecord(
        request_id=state.request_id,
        project_id=state.snapshot.id_text,
        ts=state.arrived_us,
        outcome=state.outcome,
        status_code=state.status_code,
        api_key_id=state.key.id,
        source=state.origin.source,
        session_id=state.headers.session_id,
        user_id=user_of(state),
        provider=routing.provider,
        model=routing.answered or routing.model,
        requested_model=request.model if request is not None else "",
        finish_reason=answer.finish_reason,
        cache_status=state.cache.status.decode(),
        is_stream=request is not None and request.stream is True,
        fallback_used=routing.fallback_used,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        tokens_estimated=answer.usage_estimated,
        cost_known=cost is not None,
        cost_input_usd=of_input,
        cost_cache_read_usd=of_reads,
        cost_cache_write_usd=of_writes,
        cost_output_usd=of_output,
        cost_other_usd=of_else,
        cost_usd=of_all,
        cost_source=cost.source if cost is not None else "",
        latency_ms=round((now - state.started) * 1000),
        ttft_ms=round((answer.first_output - state.started) * 1000) if answer.first_output else 0,
        retry_count=routing.retries,
        retention_days=state.snapshot.settings.retention_days,
        contract_violation=answer.contract_violation,
        attempts=_attempts(state, usage, of_all if cost is own_cost else cost_texts(own_cost)[-1]),
        attributes=_attributes(state),
    )
    # No other reference to the record exists yet, and a copy costs as much as the record.
    for name, value in _rare_fields(state).items():
        msgspec.structs.force_setattr(made, name, value)
    return made


def _rare_fields(state: RequestState) -> dict[str, Any]:
    """Most records leave these fields empty, and every field in a constructor's call costs time."""
    fields: dict[str, Any] = {}
    error, prompt, routing = state.error, state.prompt, state.routing
    if error is not None:
        fields |= {
            "error_type": error.type,
            "error_code": error.code,
            "error_message": error.message[:_MAX_ERROR_CHARACTERS],
        }
    if state.key.team_id:
        fields["team_id"] = state.key.team_id
    if state.headers.traceparent:
        fields["trace_id"], fields["parent_span_id"] = trace_parent(state.headers.traceparent)
    if state.surface is not CHAT:
        fields |= {"operation": state.surface.operation, "is_native": state.answer.is_native}
    if prompt.config_id:
        fields |= {
            "prompt_config_id": prompt.config_id,
            "prompt_name": prompt.name,
            "prompt_version": prompt.version,
            "rollout_id": prompt.rollout_id,
            "rollout_stage": prompt.stage,
            "variant": prompt.variant,
            "alloc_fallback": prompt.fallback,
            "question_cached": state.cache.question_cached,
            **prompted_fields(state),
        }
    if routing.other_used:
        fields["other_used"] = True
    return fields


def prompted_fields(state: RequestState) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if state.outcome is Outcome.SUCCESS:
        fields["empty_answer"] = is_empty(state)
    if state.prompt.rollout_id:
        fields["alloc_unit"] = state.prompt.unit
        if state.request is not None:
            fields["language"] = language_of(state.request.messages)
            fields["client_tokens"] = tokens_of_prompt(state.body, state.request)
    return fields


def _attributes(state: RequestState) -> dict[str, str]:
    attributes = state.attributes
    if state.key.attributes:
        attributes = {**attributes, **state.key.attributes}
    if state.verdicts:
        attributes = {**attributes, VERDICTS: msgspec.json.encode(state.verdicts).decode()}
    return attributes


def _attempts(state: RequestState, usage: Usage, cost: str) -> tuple[AttemptRecord, ...]:
    routing = state.routing
    if routing.served_seconds is None:
        return routing.failed
    served = AttemptRecord(
        routing.provider,
        routing.answered or routing.model,
        200 if state.answer.first_output else 0,
        "" if state.outcome is Outcome.SUCCESS else routing.stream_error or state.outcome.value,
        int(routing.served_seconds * 1000),
        usage.prompt_tokens,
        usage.completion_tokens,
        cost,
        state.offset_us(),
        routing.deployment,
    )
    return (*routing.failed, served) if routing.failed else (served,)


def _unbilled(state: RequestState) -> Cost | None:
    """A request that was refused before any provider was called costs nothing, whatever the price."""
    routing = state.routing
    is_called = routing.served_seconds is not None or routing.failed
    return None if routing.price is None and is_called else Cost()


def cost_texts(cost: Cost | None) -> tuple[str, str, str, str, str, str]:
    """Returns input, cache reads, cache writes, output, all else, and the sum, in US dollars; empty if unknown."""
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


def cost_fields(cost: Cost | None) -> dict[str, Any]:
    """Returns the fields of a record that say what it cost."""
    names = ("input", "cache_read", "cache_write", "output", "other")
    parts = {f"cost_{name}_usd": text for name, text in zip(names, cost_texts(cost), strict=False)}
    total, source = cost_texts(cost)[-1], cost.source if cost is not None else ""
    return {"cost_known": cost is not None, **parts, "cost_usd": total, "cost_source": source}


def repeatable_id(milliseconds: int, *named: str) -> str:
    """Returns a UUIDv7 that is the same for the same Unix time and names."""
    digest = hashlib.blake2b(":".join(named).encode("utf-8", "surrogatepass"), digest_size=10).digest()
    number = int.from_bytes(digest, "big") & ((1 << 74) - 1)
    time_part = milliseconds & ((1 << 48) - 1)
    value = time_part << 80 | 0x7 << 76 | (number >> 62) << 64 | 0b10 << 62 | number & ((1 << 62) - 1)
    return str(UUID(int=value))


def _usage_of(state: RequestState) -> Usage:
    """Returns the usage that the provider stated.

    Without it, output is estimated, and so is a request that was cut off while the provider was working on it, which
    may be billed. Zeros if no provider had the request.
    """
    answer = state.answer
    if answer.usage is not None:
        usage = _caught_up(state, answer.usage)
    elif answer.output_bytes or state.outcome is Outcome.SUCCESS or _was_cut_off(state):
        usage = completed_usage(state, None)
    else:
        return Usage()
    answer.usage_estimated = answer.usage_estimated or usage.estimated
    return usage


def _was_cut_off(state: RequestState) -> bool:
    """True if the client left, or the worker was stopped, when the provider had the request.

    Operations without chat completions are not counted by their body, which may be a file.
    """
    return (
        state.outcome in (Outcome.CANCELLED, Outcome.INTERRUPTED)
        and state.routing.is_written
        and not state.surface.native_only
    )


def _caught_up(state: RequestState, stated: Usage) -> Usage:
    """Estimates the output tokens of a cut stream.

    Providers that count as they go (Anthropic, Bedrock, Gemini) have then counted far less than they delivered.
    """
    if state.outcome is Outcome.SUCCESS:
        return stated
    stated = completed_usage(state, stated)
    delivered = estimated_tokens(state.answer.output_bytes)
    if stated.completion_tokens * 2 >= delivered:
        return stated
    # The cost that the provider has stated so far is too low as well.
    return msgspec.structs.replace(
        stated, completion_tokens=delivered, billed_completion_tokens=None, stated_cost=None, estimated=True
    )
