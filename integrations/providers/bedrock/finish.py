"""Translates Converse's stop reasons to the wire format, and detects answers that cannot be used."""

from __future__ import annotations

from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage

PROVIDER = "bedrock"
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
# Converse's words for "The model produced invalid output", or a call that cannot be read:
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html#bedrock-runtime_Converse-response-stopReason
_MALFORMED = ("malformed_model_output", "malformed_tool_use")


def finish_reason(stop_reason: str, *, called: bool) -> str:
    """Returns the finish reason. `called` means that the answer holds calls of the client's tools, since calls of the
    vendor's own tools end in `tool_use` too. An unknown reason behind an answer is an ordinary end (see
    `check_usable`)."""
    reason = FINISH_REASONS.get(stop_reason, "stop")
    if reason in ("stop", "tool_calls"):
        return "tool_calls" if called else "stop"
    return reason


def check_usable(stop_reason: str, *, has_output: bool, usage: Usage | None) -> None:
    """Raises ProviderError(UNUSABLE), which is billed, when the model's output was broken, even if it begins with text:
    an agent would take that text for the end of its work. An unknown reason is an error only when there is no answer
    (`has_output` is False)."""
    if stop_reason in _MALFORMED:
        problem = f"the model's answer was broken ({stop_reason})"
    elif stop_reason not in FINISH_REASONS and not has_output:
        problem = f"the answer is empty and ended for an unknown reason ({stop_reason or 'none given'})"
    else:
        return
    raise ProviderError(
        problem, kind=FailureKind.UNUSABLE, provider=PROVIDER, status=200, usage=usage, is_failed_generation=True
    )


def unusable(message: str) -> ProviderError:
    return ProviderError(message, kind=FailureKind.UNUSABLE, provider=PROVIDER, status=200)
