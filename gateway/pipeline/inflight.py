"""Writes this worker's requests in flight into a table that other processes read, with their rollout versions.

A request then counts even if it never ends or its worker dies.
"""

from __future__ import annotations

from analytics.spool.inflight import UNITS_OF_DOLLAR, UNKNOWN_RATE, InflightAllocation, InflightRequest
from gateway.pipeline.context import RequestState
from gateway.pipeline.record import estimated_prompt
from gateway.protocol.wire import ChatCompletionRequest
from gateway.runtime.runtime import Runtime
from integrations.pricing.cost import Price

# Prices are of a million tokens.
_OF_A_MILLION = UNITS_OF_DOLLAR // 1_000_000


def note_in_flight(runtime: Runtime, state: RequestState, request: ChatCompletionRequest) -> int:
    if state.slot is not None:
        return state.slot
    note_trace(runtime, state)
    return runtime.inflight.begin(
        InflightRequest(
            request_id=state.request_id,
            project_id=state.snapshot.id_text,
            ts=state.arrived_us,
            api_key_id=state.key.id,
            requested_model=request.model,
            stream=request.stream is True,
            session_id=state.headers.session_id,
            user_id=state.headers.user_id or request.user or "",
            retention_days=state.snapshot.settings.retention_days,
            operation=state.surface.operation,
            team_id=state.key.team_id,
            source=state.origin.source,
        )
    )


def note_expected(runtime: Runtime, state: RequestState) -> None:
    """Notes the prompt's cost before the provider is called, so that it counts even if the worker dies.

    Operations without chat completions are not counted by their body, which may be a file.
    """
    if state.slot is not None and not state.surface.native_only:
        runtime.inflight.expect(state.slot, estimated_prompt(state), rate_of(state.routing.price))


def rate_of(price: Price | None) -> int:
    return UNKNOWN_RATE if price is None else int(price.input * _OF_A_MILLION)


def note_trace(runtime: Runtime, state: RequestState) -> None:
    if state.headers.traceparent and state.snapshot.has_rollouts:
        runtime.traced_requests.begin(state.snapshot.id_text, state.headers.traceparent, state.arrived_us)


def note_allocation(runtime: Runtime, state: RequestState, slot: int) -> None:
    prompt = state.prompt
    runtime.inflight.allocate(
        slot,
        state.request_id,
        InflightAllocation(
            prompt.config_id,
            prompt.name,
            prompt.version,
            prompt.rollout_id,
            prompt.stage,
            prompt.variant,
            prompt.unit,
            prompt.fallback,
        ),
    )
    runtime.open_requests.begin(state)


def note_question_cached(runtime: Runtime, state: RequestState) -> None:
    """Takes the request out of comparisons, since the response cache has an answer of the other arm.

    It counts when it ends, and if the worker dies.
    """
    if state.slot is not None:
        runtime.inflight.note_question_cached(state.slot)
    runtime.open_requests.end(state)
