"""What the failure of a request within the service says about asking again."""

from __future__ import annotations

from gateway.pipeline.internal_client import Reported

DEFAULT_WAIT_SECONDS = 10.0
OUT_OF_BUDGET = "budget_error"
_RATE_LIMITED = "rate_limit_error"
_PASSING = frozenset({401, 402, 403, 408, 429})


def is_passing(error: Reported) -> bool:
    """Returns whether a failure has a reason that will pass."""
    return error.status in _PASSING or error.status >= 500


def is_too_long(error: Reported) -> bool:
    """Returns whether the request alone may use more tokens than a minute has, so that waiting is in vain."""
    return error.code.endswith("tokens_per_minute") and error.headers.get("x-should-retry") == "false"


def is_limited(error: Reported) -> bool:
    """Returns whether a rate limit has no room at this time."""
    return error.type == _RATE_LIMITED and not is_too_long(error)


def seconds_of(error: Reported) -> float:
    """Returns how long a failure asks to wait."""
    try:
        return float(error.headers.get("retry-after", ""))
    except ValueError:
        return DEFAULT_WAIT_SECONDS
