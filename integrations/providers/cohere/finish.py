"""Translates Cohere's finish reasons to the wire format, and the failures that some of them report."""

from __future__ import annotations

from typing import Any

from integrations.providers.common.failure_reasons import reason_in
from integrations.providers.common.redaction import scrub
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage

_FINISH_REASONS = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "TOOL_CALL": "tool_calls",
    "ERROR_TOXIC": "content_filter",
}
_FAILURES = {
    "ERROR": FailureKind.UNAVAILABLE,
    "TIMEOUT": FailureKind.TIMEOUT,
    "USER_CANCEL": FailureKind.UNAVAILABLE,
}


def finish_reason(reason: str, *, called_tools: bool) -> str:
    """Returns the finish reason. Reasons are those of
    https://docs.cohere.com/reference/chat#response.body.finish_reason and of the previous API
    (`cohere.types.FinishReason`); an unknown one behind an answer is an ordinary end (see `failed`)."""
    name = _FINISH_REASONS.get(reason, "stop")
    return "tool_calls" if called_tools and name == "stop" else name


def unknown_reason(reason: str) -> dict[str, str]:
    """Returns the field of `provider_specific_fields` that names an unknown reason, which counts as an ordinary end."""
    return {"finish_reason": reason} if reason and reason not in _FINISH_REASONS else {}


def failed(
    reason: str, message: Any, usage: Usage | None, *, provider: str, called_tools: bool, has_text: bool
) -> ProviderError | None:
    """Returns the failure of an answer that broke off or is empty, with its usage, which is billed; None for a proper
    answer."""
    kind = _FAILURES.get(reason) or (FailureKind.UNAVAILABLE if message else None)
    text = message if isinstance(message, str) and message else f"the provider ended the answer: {reason.lower()}"
    if kind is None and reason == "TOOL_CALL" and not called_tools:
        kind, text = FailureKind.UNUSABLE, "the answer announces a call and holds none"
    elif kind is None and reason not in _FINISH_REASONS and not (called_tools or has_text):
        kind, text = (
            FailureKind.UNUSABLE,
            f"the answer is empty and ended for an unknown reason ({reason or 'none given'})",
        )
    if kind is None:
        return None
    kind = reason_in(None, text, None, provider=provider) or kind
    is_failed_generation = kind is FailureKind.UNUSABLE
    return ProviderError(
        scrub(text), kind=kind, provider=provider, status=200, usage=usage, is_failed_generation=is_failed_generation
    )
