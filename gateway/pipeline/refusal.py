"""The errors of requests that a limit refuses: their codes, messages and headers (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from core.caller_limits import CallerLimits
from gateway.errors import BudgetExceededError, RateLimitedError
from gateway.limits.claims import Claim
from gateway.limits.keys import seconds_left
from gateway.project_settings.limits import ProjectLimits

# The SDKs of OpenAI and Anthropic read this header, and would otherwise repeat every request that got a 429.
_IN_VAIN = {"x-should-retry": "false"}
# A place is free when any request of the same holder ends.
_WAIT_FOR_PLACE = "1"
_HOLDERS = {"team_": "team", "key_": "API key", "user_": "end user"}
_NO_LIMITS = CallerLimits()

Rates = Sequence[tuple[bytes, bytes]]


def refusal(
    limits: ProjectLimits, claim: Claim, refused_by: str, rates: Rates
) -> RateLimitedError | BudgetExceededError:
    """Returns the error; `refused_by` is that of an Admission, `rates` are the headers that report on rates."""
    prefix = next((prefix for prefix in _HOLDERS if refused_by.startswith(prefix)), "")
    holder = _HOLDERS.get(prefix, "project")
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
            message = f"The {holder}'s budget of {_dollars(budget)} USD for this month is used up"
            return _over_budget(message, f"{prefix}monthly_budget_exceeded", known)
        case "total":
            message = f"The {holder}'s budget of {_dollars(of_caller.total_budget_usd)} USD is used up"
            return _over_budget(message, f"{prefix}total_budget_exceeded", known)
        case _:
            message = f"The session's budget of {_dollars(limits.session_budget_usd)} USD is used up"
            return _over_budget(message, "session_budget_exceeded", known)


def _out_of_tokens(claim: Claim, prefix: str, limit: int, known: dict[str, str]) -> RateLimitedError:
    code, holder = f"{prefix}tokens_per_minute", _HOLDERS.get(prefix, "project")
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
    """Returns the amount without the zeros that the database appends."""
    return f"{(amount or Decimal(0)).normalize():f}"
