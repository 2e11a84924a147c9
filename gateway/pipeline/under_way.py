"""Says of a request whose prompt a rollout chose that it is under way, so that no end of it is missing in the rollout's
comparison: neither that it never ends, nor that its worker dies."""

from __future__ import annotations

from analytics.spool.inflight import InflightAllocation
from gateway.pipeline.context import RequestState
from gateway.runtime import Runtime


def note_allocation(runtime: Runtime, state: RequestState, slot: int) -> None:
    """`slot` is the request's in the table of those in flight."""
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
