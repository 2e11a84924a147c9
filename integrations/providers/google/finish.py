"""Gemini's finish reasons in the words of the wire format, and those that leave no answer.

https://ai.google.dev/api/generate-content#FinishReason, #BlockReason, and Vertex AI's own
(https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentResponse#finishreason).
"""

from __future__ import annotations

from integrations.providers.common.redaction import scrub
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.google.parts import Choice
from integrations.providers.google.shapes import PromptFeedback, reason_named
from integrations.providers.usage import Usage

FILTERED = "content_filter"
_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    # The most that one request writes: Google's own SDK asks again with the answer's `continuationToken`.
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
# The model botched what it was about to do, or was not let go on: what it said until then is not its answer.
_BOTCHED = frozenset(
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
    """Google says STOP for function calls too. An answer that says something ends with `stop` whatever else it says
    of its end (OTHER, NO_IMAGE, a reason of tomorrow); see `unusable_end` for those that say nothing."""
    reason = _REASONS.get(reason_named(native), "stop")
    return "tool_calls" if called_tools and reason == "stop" else reason


def unusable_end(choice: Choice, *, provider: str, usage: Usage | None) -> ProviderError | None:
    """The failure that the answer is, None when it is one: a botched call, or no content and no reason that explains
    it. To the client an empty `stop` would look like the end of the work."""
    reason = reason_named(choice.finished)
    if reason not in _BOTCHED and (reason in _REASONS or choice.says_something):
        return None
    message = f"the model's answer ended with {reason or 'no reason'} and cannot be used"
    return ProviderError(
        scrub(f"{message}: {choice.message}" if choice.message else message),
        kind=FailureKind.UNUSABLE,
        provider=provider,
        status=200,
        usage=usage,
        is_botched=True,
    )


def is_blocked(feedback: PromptFeedback | None) -> bool:
    """Returns True when the prompt was refused before a model saw it."""
    return feedback is not None and bool(feedback.block_reason)
