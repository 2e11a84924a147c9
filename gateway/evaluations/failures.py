from __future__ import annotations

from gateway.pipeline.internal_client import Reported

DEFAULT_WAIT_SECONDS = 10.0
OUT_OF_BUDGET = "budget_error"
_RATE_LIMITED = "rate_limit_error"
_PASSING = frozenset({401, 402, 403, 408, 429})


def is_passing(error: Reported) -> bool:
    return error.status in _PASSING or error.status >= 500


def is_too_long(error: Reported) -> bool:
    """Whether the request alone may exceed the tokens per minute, so that waiting is useless."""
    return error.code.endswith("tokens_per_minute") and error.headers.get("x-should-retry") == "false"


def is_limited(error: Reported) -> bool:
    return error.type == _RATE_LIMITED and not is_too_long(error)


def seconds_of(error: Reported) -> float:
    try:
        return float(error.headers.get("retry-after", ""))
    except ValueError:
        return DEFAULT_WAIT_SECONDS
