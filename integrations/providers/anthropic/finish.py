from __future__ import annotations

from typing import Any

from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.redaction import scrub
from integrations.providers.errors import ProviderError, unusable

# An answer with a stop reason of this mapping may be empty:
# https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons.
_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
# The finish reason expresses the listed stop reasons fully; for any other the client also gets the vendor's own reason.
_STANDARD_REASONS = frozenset({"end_turn", "stop_sequence", "tool_use", "max_tokens", "refusal"})
# The table of types of errors and their statuses is at https://docs.anthropic.com/en/api/errors
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


def finish_reason(stop_reason: str | None, *, called_tools: bool, has_content: bool, provider: str) -> str:
    """Translates the stop reason.

    An answer with calls ends with `tool_calls`, unless it was cut off. `pause_turn` (a long turn of the vendor's own
    tools), `compaction` and unknown reasons count as a normal end; `own_fields` names them. Raises
    ProviderError(UNUSABLE) for an empty answer whose reason requires content.
    """
    reason = _FINISH_REASONS.get(stop_reason or "")
    if reason is None and not has_content:
        message = scrub(f"the answer holds nothing, its stop reason is {stop_reason!r}")
        raise unusable(message, provider, is_failed_generation=True)
    return "tool_calls" if called_tools and reason in (None, "stop") else reason or "stop"


def own_fields(stop_reason: str | None, **given: Any) -> dict[str, Any]:
    fields = {name: value for name, value in given.items() if value}
    return fields if stop_reason is None or stop_reason in _STANDARD_REASONS else {"stop_reason": stop_reason, **fields}


def refusal_text(stop_details: Any) -> str:
    explanation = stop_details.get("explanation") if isinstance(stop_details, dict) else None
    return explanation if isinstance(explanation, str) else ""


def reported_failure(error: Any, *, provider: str) -> ProviderError:
    """The failure an error object stands for; its `type` replaces the status, which is 200."""
    kind = error.get("type") if isinstance(error, dict) else None
    status = _STATUSES.get(kind, _UNKNOWN_STATUS) if isinstance(kind, str) else _UNKNOWN_STATUS
    return failure_in_body({"error": error}, provider=provider, status=status)
