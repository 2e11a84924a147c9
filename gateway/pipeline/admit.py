"""Stage 6: the project's rate limits and budgets (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from decimal import Decimal

from analytics.contracts import RequestRecord
from gateway.errors import BudgetExceededError, RateLimitedError
from gateway.limits.claims import Admission, Claim, Reservation
from gateway.limits.keys import seconds_left
from gateway.limits.limiter import Limiter
from gateway.limits.units import recorded_units
from gateway.pipeline.context import Attempt, LimitUse, RequestContext, RequestState
from gateway.pipeline.native import is_native_only
from gateway.pipeline.rate_headers import rate_headers
from gateway.pipeline.reservation import completion_tokens, cost_units, prices_of, prompt_tokens
from gateway.project_settings.settings import LimitSettings
from gateway.runtime import Runtime

_OVER_BUDGET = "the month's budget is used up"
# The SDKs of OpenAI and Anthropic read this header, and would otherwise repeat every request that got a 429.
_IN_VAIN = {"x-should-retry": "false"}


def admit(runtime: Runtime, context: RequestContext, state: RequestState, attempts: list[Attempt]) -> Awaitable[None]:
    """Reserves the tokens and the cost of a request of a project with limits.

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
    limits = state.snapshot.settings.limits
    session = state.headers.session_id
    claim = Claim(state.request_id, state.snapshot.id_text, session, state.arrived_us, tokens, cost)
    admission = await runtime.limiter.admit(limits, claim)
    state.limits = LimitUse(admission.reservation, rate_headers(limits, claim.arrived_us, admission))
    if admission.refused_by:
        raise _refusal(limits, claim, admission, state.limits.headers)
    if admission.month_is_spent:
        state.warnings = (*state.warnings, _OVER_BUDGET)


def settle(limiter: Limiter, reservation: Reservation, record: RequestRecord) -> None:
    """Replaces the reservation by the record's tokens and cost; a cost that is not known counts as zero."""
    cost = recorded_units(record.cost_usd) if record.cost_usd else 0
    limiter.settle(reservation, record.prompt_tokens + record.completion_tokens, cost)


def _refusal(
    limits: LimitSettings, claim: Claim, admission: Admission, rates: Sequence[tuple[bytes, bytes]]
) -> RateLimitedError | BudgetExceededError:
    known = {name.decode(): value.decode() for name, value in rates}
    in_vain = {**_IN_VAIN, **known}
    wait = {"retry-after": str(seconds_left(claim.arrived_us)), **known}
    match admission.refused_by:
        case "requests":
            message = f"The project's limit of {limits.requests_per_minute} requests per minute is reached"
            return RateLimitedError(message, code="requests_per_minute", headers=wait)
        case "tokens":
            limit = limits.tokens_per_minute or 0
            if claim.tokens > limit:
                message = (
                    f"The request may use {claim.tokens} tokens, more than the {limit} that the project may use in a "
                    "minute: lower max_tokens or shorten the prompt"
                )
                return RateLimitedError(message, code="tokens_per_minute", headers=in_vain)
            message = f"The project's limit of {limit} tokens per minute leaves no room for {claim.tokens} more"
            return RateLimitedError(message, code="tokens_per_minute", headers=wait)
        case "month":
            message = f"The project's budget of {_dollars(limits.monthly_budget_usd)} USD for this month is used up"
            return BudgetExceededError(message, code="monthly_budget_exceeded", headers=in_vain)
        case _:
            message = f"The session's budget of {_dollars(limits.session_budget_usd)} USD is used up"
            return BudgetExceededError(message, code="session_budget_exceeded", headers=in_vain)


def _dollars(amount: Decimal | None) -> str:
    """Returns the amount without the zeros that the database appends."""
    return f"{(amount or Decimal(0)).normalize():f}"
