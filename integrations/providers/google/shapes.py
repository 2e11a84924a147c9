"""https://ai.google.dev/api/generate-content"""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.common.odd_usage import despite_usage
from integrations.providers.common.surrogates import lenient

NOTHING = msgspec.Raw(b"null")
"""The value of a raw field that an answer does not have."""


class FunctionCall(msgspec.Struct):
    """`args` keeps its JSON text, which is sent on as text."""

    name: str = ""
    id: str | None = None
    args: msgspec.Raw = NOTHING


class Blob(msgspec.Struct, rename="camel"):
    mime_type: str = ""
    data: str = ""


class Part(msgspec.Struct, rename="camel"):
    """A text, a function call, a file, or (in the last fields) a step of Google's own tools."""

    text: str | None = None
    thought: bool | None = False
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    inline_data: Blob | None = None
    executable_code: msgspec.Raw = NOTHING
    code_execution_result: msgspec.Raw = NOTHING
    tool_call: msgspec.Raw = NOTHING
    tool_response: msgspec.Raw = NOTHING

    def is_of_a_tool(self) -> bool:
        mine = (self.executable_code, self.code_execution_result, self.tool_call, self.tool_response)
        return any(has(held) for held in mine)


class Content(msgspec.Struct):
    parts: list[Part] | None = None


class Candidate(msgspec.Struct, rename="camel"):
    """`finish_reason` is a name, or its number if the client asked for `enum-encoding=int`."""

    content: Content | None = None
    finish_reason: str | int | None = None
    finish_message: str | None = None
    index: int | None = None
    grounding_metadata: msgspec.Raw = NOTHING
    citation_metadata: msgspec.Raw = NOTHING
    safety_ratings: msgspec.Raw = NOTHING
    url_context_metadata: msgspec.Raw = NOTHING
    continuation_token: str | None = None
    logprobs_result: msgspec.Raw = NOTHING

    def has_remarks(self) -> bool:
        """True if the event has fields about the answer as a whole; most events have none."""
        nothing = self.grounding_metadata is self.citation_metadata is self.safety_ratings is self.url_context_metadata
        return not nothing or self.continuation_token is not None


class UsageMetadata(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    total_token_count: int | None = None
    # The lists of `modality` and `tokenCount` stay undecoded, since every event of a stream repeats them.
    prompt_tokens_details: msgspec.Raw = NOTHING
    candidates_tokens_details: msgspec.Raw = NOTHING
    cache_tokens_details: msgspec.Raw = NOTHING
    service_tier: Any = None
    traffic_type: Any = None


class PromptFeedback(msgspec.Struct, rename="camel"):
    block_reason: str | int | None = None
    block_reason_message: str | None = None


class Response(msgspec.Struct, rename="camel"):
    """A whole answer or one event. Google also reports failures (`error`) under status 200."""

    candidates: list[Candidate] | None = None
    prompt_feedback: msgspec.Raw = NOTHING
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | None = None
    error: msgspec.Raw = NOTHING

    def feedback(self) -> PromptFeedback | None:
        feedback: PromptFeedback | None = _decode_feedback(self.prompt_feedback)
        return feedback


_decode_feedback = lenient(msgspec.json.Decoder(PromptFeedback | None).decode)
# `plain` decodes fields that were kept raw to plain values.
plain = lenient(msgspec.json.Decoder().decode)
decode = despite_usage(lenient(msgspec.json.Decoder(Response).decode))


def has(raw: msgspec.Raw) -> bool:
    return raw is not NOTHING and bytes(raw) not in (b"null", b"{}", b"[]")


# The finish reasons have the numbers of google.cloud.aiplatform.v1.Candidate.FinishReason.
_NUMBERS = (
    "FINISH_REASON_UNSPECIFIED",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "UNEXPECTED_TOOL_CALL",
    "NO_IMAGE",
)


def reason_named(native: str | int | None) -> str:
    if isinstance(native, int):
        return _NUMBERS[native] if 0 <= native < len(_NUMBERS) else f"REASON_{native}"
    return (native or "").upper()
