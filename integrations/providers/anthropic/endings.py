"""How answers end: stop reasons, and errors that arrive under status 200."""

from __future__ import annotations

from typing import Any

from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.failures import kind_of, message_in, scrub

# https://docs.anthropic.com/en/api/handling-stop-reasons. `pause_turn` is a long turn of the vendor's own tools.
_FINISH_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
# https://docs.anthropic.com/en/api/errors
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_UNKNOWN_STATUS = 500


def finish_reason(stop_reason: str | None, *, called_tools: bool) -> str:
    """In the wire format's words. Calls count as such whatever the vendor says, unless the answer was cut off."""
    return _FINISH_REASONS.get(stop_reason or "") or ("tool_calls" if called_tools else "stop")


def refusal_text(stop_details: Any) -> str:
    """Why the model refused; empty when the vendor does not say."""
    explanation = stop_details.get("explanation") if isinstance(stop_details, dict) else None
    return explanation if isinstance(explanation, str) else ""


def reported_failure(error: Any, *, provider: str) -> ProviderError:
    """`error` is the object with `type` and `message`; its type stands for the status that came too late."""
    kind = error.get("type") if isinstance(error, dict) else None
    status = _STATUSES.get(kind, _UNKNOWN_STATUS) if isinstance(kind, str) else _UNKNOWN_STATUS
    message = scrub(message_in(error)) or f"{provider} reported an error without a message"
    return ProviderError(message, kind=kind_of(status), provider=provider, status=status)


def unusable(message: str, *, provider: str) -> ProviderError:
    return ProviderError(scrub(message), kind=FailureKind.UNUSABLE, provider=provider, status=200)
