from __future__ import annotations

from gateway.pipeline.context import RequestContext, RequestState
from gateway.protocol.headers import PREFIX
from gateway.snapshot.prompts import ManagedPrompt, PromptUse, RunningRollout
from prompts.selectors import PromptVersionRecord
from rollouts.allocation import Allocation, AllocationType, UnitKind, Variant, variant_of

# A request that forces its variant has no allocation unit, which keeps it out of every comparison.
_FORCED_UNIT = 0
_MAX_CACHED_UNITS, _MAX_CACHED_CHARACTERS = 5000, 200
_UNIT_NAMES = {
    AllocationType.USER_STICKY: f"user ({PREFIX}user-id)",
    AllocationType.SESSION_STICKY: f"session ({PREFIX}session-id)",
}


def version_for(
    prompt: ManagedPrompt, active: PromptVersionRecord, context: RequestContext, state: RequestState
) -> PromptVersionRecord:
    rollout, forced = prompt.rollout, context.headers.force_variant
    if rollout is None:
        if forced:
            state.warnings = (f"{PREFIX}force-variant: no rollout of {prompt.name!r} is running",)
        state.prompt = PromptUse(prompt.config_id, prompt.name, active.number)
        return active
    if forced:
        allocation = Allocation(Variant(forced), _FORCED_UNIT, UnitKind.REQUEST, fallback=False)
    else:
        allocation = _allocated(rollout, context, state)
    version = rollout.target if allocation.variant is Variant.TARGET else rollout.baseline
    state.prompt = PromptUse(
        prompt.config_id,
        prompt.name,
        version.number,
        rollout.id,
        rollout.stage,
        allocation.variant.value,
        allocation.unit,
        allocation.fallback,
    )
    return version


def _allocated(rollout: RunningRollout, context: RequestContext, state: RequestState) -> Allocation:
    user_id, session_id = context.headers.user_id or context.request.user or "", context.headers.session_id
    allocation = allocation_for(rollout, user_id, session_id, state.request_id)
    if allocation.fallback:
        state.warnings = (
            f"the rollout goes by {_UNIT_NAMES[rollout.allocation_type]}, and the request names none: "
            f"it was allocated by {allocation.kind.value}",
        )
    return allocation


def allocation_for(rollout: RunningRollout, user_id: str, session_id: str, request_id: str) -> Allocation:
    unit = _unit(rollout.allocation_type, user_id, session_id)
    known = rollout.drawn.get(unit)
    if known is not None:
        return known
    allocation = variant_of(
        rollout.id,
        rollout.allocation_type,
        rollout.weight,
        user_id=user_id,
        session_id=session_id,
        request_id=request_id,
    )
    if unit and len(unit) <= _MAX_CACHED_CHARACTERS:
        # Clients choose the ids, so the cache of allocations is bounded.
        if len(rollout.drawn) >= _MAX_CACHED_UNITS:
            rollout.drawn.clear()
        rollout.drawn[unit] = allocation
    return allocation


def _unit(kind: AllocationType, user_id: str, session_id: str) -> str:
    if kind is AllocationType.USER_STICKY:
        return user_id
    return session_id if kind is AllocationType.SESSION_STICKY else ""
