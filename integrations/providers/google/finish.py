"""Translates Gemini's finish reasons to the wire format, and detects those that leave no answer.
https://ai.google.dev/api/generate-content#FinishReason, #BlockReason, and Vertex AI's own
(https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentResponse#finishreason)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from integrations.providers.common.redaction import scrub
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.google.shapes import PromptFeedback, reason_named
from integrations.providers.usage import Usage

FILTERED = "content_filter"
REASONS: Mapping[str | int | None, str] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    # The answer reached the limit of one request: Google's own SDK asks again with the answer's `continuationToken`.
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "MODEL_ARMOR",
            "ESCALATION",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
        ),
        FILTERED,
    ),
}
# With the following finish reasons the model failed in a call or was stopped, so that its text until then is not its
# answer.
_FAILED_GENERATIONS = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "PUP_LIMITED_DISABLED",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)


def finish_reason(native: str | int | None, *, called_tools: bool) -> str:
    """Returns the finish reason. Google sends STOP for function calls too. An answer with content ends with `stop`
    under any other reason (OTHER, NO_IMAGE, an unknown one); `unusable_end` handles answers without content."""
    # Nearly all reasons are one of these names.
    reason = REASONS.get(native) or REASONS.get(reason_named(native), "stop")
    return "tool_calls" if called_tools and reason == "stop" else reason


class End(Protocol):
    """The end of a choice. `finished` is Google's reason, `message` the reason in its words."""

    @property
    def finished(self) -> str | int | None: ...

    @property
    def message(self) -> str: ...

    @property
    def has_content(self) -> bool: ...


def unusable_end(choice: End, *, provider: str, usage: Usage | None) -> ProviderError | None:
    """Returns the failure of a choice that is no answer: a failed call, or no content and no reason that explains it.
    Returns None for an answer. To the client an empty `stop` would look like the end of the work."""
    reason = reason_named(choice.finished)
    if reason not in _FAILED_GENERATIONS and (reason in REASONS or choice.has_content):
        return None
    message = f"the model's answer ended with {reason or 'no reason'} and cannot be used"
    return ProviderError(
        scrub(f"{message}: {choice.message}" if choice.message else message),
        kind=FailureKind.UNUSABLE,
        provider=provider,
        status=200,
        usage=usage,
        is_failed_generation=True,
    )


def is_blocked(feedback: PromptFeedback | None) -> bool:
    """Returns True when the prompt was refused before a model saw it."""
    return feedback is not None and bool(feedback.block_reason)
