"""Stage 6: the rate limits and budgets of project, session, team, API key and end user (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Awaitable

from analytics.request_log.record import RequestRecord
from gateway.limits.claims import Claim, Reservation
from gateway.limits.limiter import Limiter
from gateway.limits.units import recorded_units
from gateway.pipeline.callers import caller_of
from gateway.pipeline.context import Attempt, LimitUse, RequestContext, RequestState
from gateway.pipeline.native import is_native_only
from gateway.pipeline.rate_headers import rate_headers
from gateway.pipeline.refusal import refusal
from gateway.pipeline.reservation import completion_tokens, cost_units, prices_of, prompt_tokens
from gateway.runtime.runtime import Runtime

_OVER_BUDGET = "the month's budget is used up"


def admit(runtime: Runtime, context: RequestContext, state: RequestState, attempts: list[Attempt]) -> Awaitable[None]:
    """Reserves the tokens and the cost of a request to which limits apply.

    Raises RateLimitedError or BudgetExceededError, and then has counted nothing. The attempts are known by now because
    a reservation needs a price.
    """
    prompt = prompt_tokens(context)
    has_output = context.native is None or not is_native_only(context)
    completion = completion_tokens(context.request) if has_output else 0
    cost = cost_units(prices_of(context, attempts), prompt, completion)
    return _admitted(runtime, state, prompt + completion, cost)


def admit_free(runtime: Runtime, state: RequestState) -> Awaitable[None]:
    """Counts a request that uses no tokens and costs nothing. Raises RateLimitedError, or BudgetExceededError where a
    budget has been exceeded."""
    return _admitted(runtime, state, 0, 0)


async def _admitted(runtime: Runtime, state: RequestState, tokens: int, cost: int) -> None:
    limits = state.snapshot.limits
    session = state.headers.session_id
    claim = Claim(state.request_id, state.snapshot.id_text, session, state.arrived_us, tokens, cost, caller_of(state))
    admission = runtime.limiter.admit_at_once(limits, claim) or await runtime.limiter.ask(limits, claim)
    state.limits = LimitUse(admission.reservation, rate_headers(claim.arrived_us, admission))
    if admission.refused_by:
        raise refusal(limits, claim, admission.refused_by, state.limits.headers)
    if admission.month_is_spent:
        state.warnings = (*state.warnings, _OVER_BUDGET)


def settle(limiter: Limiter, reservation: Reservation, record: RequestRecord) -> None:
    """Replaces the reservation by the record's tokens and cost; a cost that is not known counts as zero."""
    cost = recorded_units(record.cost_usd) if record.cost_usd else 0
    limiter.settle(reservation, record.prompt_tokens + record.completion_tokens, cost)
