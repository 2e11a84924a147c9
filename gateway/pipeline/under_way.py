"""Notes where other processes can see them the requests that this worker is serving, and the version that a rollout
chose for each. A request then counts even when it never ends or its worker dies."""

from __future__ import annotations

from analytics.spool.inflight import InflightAllocation, InflightRequest
from gateway.pipeline.context import RequestState
from gateway.protocol.wire import ChatCompletionRequest
from gateway.runtime import Runtime


def note_in_flight(runtime: Runtime, state: RequestState, request: ChatCompletionRequest) -> int:
    """Returns the request's slot in the table of requests in flight."""
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
            retention_days=state.snapshot.settings.logging.retention_days,
        )
    )


def note_allocation(runtime: Runtime, state: RequestState, slot: int) -> None:
    """Notes the version that a rollout chose. `slot` is the request's in the table of requests in flight."""
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
