"""Stage 6: the rate limits and budgets of project, session, team, API key and end user (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from decimal import Decimal

from analytics.request_log.record import RequestRecord
from core.caller_limits import CallerLimits
from core.errors import ApplicationError
from gateway.errors import BudgetExceededError, LimitsUnavailableError, RateLimitedError
from gateway.limits.claims import UNCOUNTED, Admission, Claim, Reservation
from gateway.limits.keys import seconds_left
from gateway.limits.limiter import Limiter
from gateway.limits.units import from_units, recorded_units
from gateway.pipeline.callers import caller_of
from gateway.pipeline.context import Attempt, LimitUse, RequestContext, RequestState
from gateway.pipeline.native import is_native_only
from gateway.pipeline.rate_headers import rate_headers
from gateway.pipeline.reservation import completion_tokens, cost_units, prices_of, prompt_tokens
from gateway.project_settings.limits import ProjectLimits
from gateway.runtime.runtime import Runtime

_OVER_BUDGET = "the month's budget is used up"


# The SDKs of OpenAI and Anthropic read this header, and would otherwise repeat every request that got a 429.
_IN_VAIN = {"x-should-retry": "false"}
# A place is free when any request of the same holder ends.
_WAIT_FOR_PLACE = "1"
_WHEN_REDIS_IS_BACK = {"retry-after": "1"}
# Who has a limit, by the beginning of its name, and the page on which a budget is raised.
_HOLDERS = {
    "team_": ("team", "Teams"),
    "key_": ("API key", "API keys"),
    "user_": ("end user", "Limits and budgets"),
    "session": ("session", "Limits and budgets"),
}
_PROJECT = "project", "Limits and budgets"
_NO_LIMITS = CallerLimits()

Rates = Sequence[tuple[bytes, bytes]]


def refusal(limits: ProjectLimits, claim: Claim, admission: Admission, rates: Rates) -> ApplicationError:
    refused_by, left = admission.refused_by, admission.left
    if refused_by == UNCOUNTED:
        return LimitsUnavailableError(headers=_WHEN_REDIS_IS_BACK)
    prefix = next((prefix for prefix in ("team_", "key_", "user_") if refused_by.startswith(prefix)), "")
    holder, _ = _HOLDERS.get(prefix, _PROJECT)
    caller = claim.caller
    limits_of = {"team_": caller.team_limits, "key_": caller.key_limits, "user_": caller.user_limits}
    of_caller = limits_of.get(prefix) or _NO_LIMITS
    known = {name.decode(): value.decode() for name, value in rates}
    match refused_by.removeprefix(prefix):
        case "requests":
            limit = (of_caller if prefix else limits).requests_per_minute
            message = f"The {holder}'s limit of {limit} requests per minute is reached"
            wait = {"retry-after": str(seconds_left(claim.arrived_us)), **known}
            return RateLimitedError(message, code=f"{prefix}requests_per_minute", headers=wait)
        case "tokens":
            limit = (of_caller if prefix else limits).tokens_per_minute or 0
            return _out_of_tokens(claim, prefix, limit, known)
        case "concurrency":
            message = f"The {holder} has {of_caller.concurrent_requests} requests under way, which is its limit"
            return RateLimitedError(
                message, code=f"{prefix}concurrent_requests", headers={"retry-after": _WAIT_FOR_PLACE, **known}
            )
        case "month":
            budget = (of_caller if prefix else limits).monthly_budget_usd
            message = _budget_message(prefix, f"{_dollars(budget)} USD for this month", claim, left)
            return _over_budget(message, f"{prefix}monthly_budget_exceeded", known)
        case "total":
            message = _budget_message(prefix, f"{_dollars(of_caller.total_budget_usd)} USD", claim, left)
            return _over_budget(message, f"{prefix}total_budget_exceeded", known)
        case _:
            message = _budget_message("session", f"{_dollars(limits.session_budget_usd)} USD", claim, left)
            return _over_budget(message, "session_budget_exceeded", known)


def _budget_message(prefix: str, budget: str, claim: Claim, left: int) -> str:
    holder, page = _HOLDERS.get(prefix, _PROJECT)
    if not left:
        return f"The {holder}'s budget of {budget} is used up: an administrator can raise it under {page}"
    return (
        f"The {holder}'s budget of {budget} has {_dollars(from_units(left))} USD left, and this request may cost up to "
        f"{_dollars(from_units(claim.cost))} USD: lower max_tokens or shorten the prompt, or have an administrator "
        f"raise the budget under {page}"
    )


def _out_of_tokens(claim: Claim, prefix: str, limit: int, known: dict[str, str]) -> RateLimitedError:
    code, (holder, _) = f"{prefix}tokens_per_minute", _HOLDERS.get(prefix, _PROJECT)
    if claim.tokens > limit:
        message = (
            f"The request may use {claim.tokens} tokens, more than the {limit} that the {holder} may use in a "
            "minute: lower max_tokens or shorten the prompt"
        )
        return RateLimitedError(message, code=code, headers={**_IN_VAIN, **known})
    message = f"The {holder}'s limit of {limit} tokens per minute leaves no room for {claim.tokens} more"
    return RateLimitedError(message, code=code, headers={"retry-after": str(seconds_left(claim.arrived_us)), **known})


def _over_budget(message: str, code: str, known: dict[str, str]) -> BudgetExceededError:
    return BudgetExceededError(message, code=code, headers={**_IN_VAIN, **known})


def _dollars(amount: Decimal | None) -> str:
    return f"{(amount or Decimal(0)).normalize():f}"


def admit(runtime: Runtime, context: RequestContext, state: RequestState, attempts: list[Attempt]) -> Awaitable[None]:
    """Reserves the tokens and the cost of a request to which limits apply.

    Raises what `refusal` returns, and then has counted nothing. The reservation needs a price, so the attempts must be
    known.
    """
    prompt = prompt_tokens(context)
    has_output = context.native is None or not is_native_only(context)
    completion = completion_tokens(context.request) if has_output else 0
    cost = cost_units(prices_of(context, attempts), prompt, completion)
    return _admitted(runtime, state, prompt + completion, cost)


def admit_free(runtime: Runtime, state: RequestState) -> Awaitable[None]:
    return _admitted(runtime, state, 0, 0)


async def _admitted(runtime: Runtime, state: RequestState, tokens: int, cost: int) -> None:
    limits = state.snapshot.limits
    session = state.headers.session_id
    claim = Claim(state.request_id, state.snapshot.id_text, session, state.arrived_us, tokens, cost, caller_of(state))
    admission = runtime.limiter.admit_at_once(limits, claim) or await runtime.limiter.ask(limits, claim)
    state.limits = LimitUse(admission.reservation, rate_headers(claim.arrived_us, admission))
    if admission.refused_by:
        raise refusal(limits, claim, admission, state.limits.headers)
    if admission.month_is_spent:
        state.warnings = (*state.warnings, _OVER_BUDGET)


def settle(limiter: Limiter, reservation: Reservation, record: RequestRecord) -> None:
    cost = recorded_units(record.cost_usd) if record.cost_usd else 0
    limiter.settle(reservation, record.prompt_tokens + record.completion_tokens, cost)
