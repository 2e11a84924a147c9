"""Which version of a prompt a request gets (specification, Rollout; design, section 5, Rollouts)."""

from __future__ import annotations

from gateway.pipeline.context import RequestContext, RequestState
from gateway.protocol.headers import PREFIX
from gateway.snapshot.prompts import ManagedPrompt, PromptUse, RunningRollout
from prompts.selectors import PromptVersionRecord
from rollouts.allocation import Allocation, AllocationType, UnitKind, Variant, variant_of

# A forced request was not allocated: it has no unit, which keeps it out of every comparison.
_FORCED_UNIT = 0
_REMEMBERED_UNITS, _REMEMBERED_CHARACTERS = 5000, 200
_WANTED = {
    AllocationType.USER_STICKY: f"user ({PREFIX}user-id)",
    AllocationType.SESSION_STICKY: f"session ({PREFIX}session-id)",
}


def version_for(
    prompt: ManagedPrompt, active: PromptVersionRecord, context: RequestContext, state: RequestState
) -> PromptVersionRecord:
    """The active version, or the one of the arm that a running rollout gives the request. Noted in the state."""
    rollout, forced = prompt.rollout, context.headers.force_variant
    if rollout is None:
        if forced:
            state.prompt_warnings = (f"{PREFIX}force-variant: no rollout of {prompt.name!r} is running",)
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
    wanted = _unit(rollout.allocation_type, user_id, session_id)
    known = rollout.drawn.get(wanted)
    if known is not None:
        return known
    allocation = variant_of(
        rollout.id,
        rollout.allocation_type,
        rollout.weight,
        user_id=user_id,
        session_id=session_id,
        request_id=state.request_id,
    )
    if wanted and len(wanted) <= _REMEMBERED_CHARACTERS:
        # Clients choose the ids.
        if len(rollout.drawn) >= _REMEMBERED_UNITS:
            rollout.drawn.clear()
        rollout.drawn[wanted] = allocation
    if allocation.fallback:
        state.prompt_warnings = (
            f"the rollout goes by {_WANTED[rollout.allocation_type]}, and the request names none: "
            f"it was allocated by {allocation.kind.value}",
        )
    return allocation


def _unit(kind: AllocationType, user_id: str, session_id: str) -> str:
    """Empty for a request that is allocated by itself, for want of the unit or by intent."""
    if kind is AllocationType.USER_STICKY:
        return user_id
    return session_id if kind is AllocationType.SESSION_STICKY else ""
