"""The shapes of a well-formed answer and chunk, and the repair of fields that vendors get wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping
from hashlib import blake2b
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

CHUNK = "chat.completion.chunk"
COMPLETION = "chat.completion"
NO_ARGUMENTS = "{}"
"""The arguments of a call without parameters, which clients read as JSON (`docs/providers.md`, answers)."""

_LAST_SECOND = 2**53
_REASONING = b'"reasoning":"'
_encode = msgspec.json.Encoder().encode

_OUTPUT_FIELDS = (
    "content",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
    "images",
    "annotations",
)


class FunctionDelta(msgspec.Struct):
    name: str | UnsetType | None = UNSET
    arguments: str | UnsetType = UNSET


class CustomToolDelta(msgspec.Struct):
    name: str | UnsetType | None = UNSET


class ToolCallDelta(msgspec.Struct):
    index: int
    id: str | UnsetType | None = UNSET
    type: str | UnsetType | None = UNSET
    function: FunctionDelta | None = None
    custom: CustomToolDelta | None = None


class Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    tool_calls: list[ToolCallDelta] | None = None
    function_call: Any = None
    refusal: Any = None
    audio: Any = None
    images: Any = None
    annotations: Any = None

    def has_output(self) -> bool:
        return bool(
            self.content
            or self.reasoning_content
            or self.reasoning
            or self.tool_calls
            or self.reasoning_details
            or self.refusal
            or self.audio
            or self.function_call
            or self.images
            or self.annotations
        )


class ChunkChoice(msgspec.Struct):
    index: int
    delta: Delta
    finish_reason: str | None
    error: Any = None


class GroqExtension(msgspec.Struct):
    usage: Any = None


class Chunk(msgspec.Struct):
    """Decoding succeeds only if every field of the gateway's API is present with its type."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Any = None
    error: Any = None
    x_groq: GroqExtension | None = None


_Empty = Annotated[list[Any], msgspec.Meta(max_length=0)]


class PlainDelta(Delta, kw_only=True):
    content: str
    reasoning: Literal[""] | None = None
    reasoning_details: _Empty | None = None
    tool_calls: Annotated[list[ToolCallDelta], msgspec.Meta(max_length=0)] | None = None
    function_call: None = None
    annotations: _Empty | None = None


class PlainChoice(ChunkChoice, kw_only=True):
    index: Literal[0]
    delta: PlainDelta
    finish_reason: None
    error: None = None


class PlainChunk(Chunk, kw_only=True):
    # A narrower type is safe, since nobody changes what was decoded.
    choices: Annotated[list[PlainChoice], msgspec.Meta(min_length=1, max_length=1)]  # type: ignore[assignment]
    usage: None = None
    error: None = None
    x_groq: None = None


class Function(msgspec.Struct):
    name: str
    arguments: str


class ToolCall(msgspec.Struct):
    id: str
    type: str
    function: Function | None = None


class Audio(msgspec.Struct):
    id: Any = None


class ChatCompletionMessage(msgspec.Struct):
    role: str
    content: str | None
    tool_calls: list[ToolCall] | None = None
    function_call: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    audio: Audio | None = None


class Choice(msgspec.Struct):
    index: int
    message: ChatCompletionMessage
    finish_reason: str
    error: Any = None


class UsageCounts(msgspec.Struct, omit_defaults=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, Any] | None = None
    completion_tokens_details: dict[str, Any] | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None
    num_cached_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    # The fields from here on hold charges (see `charges.py`).
    cost: Any = None
    cost_details: Any = None
    is_byok: Any = None
    cost_in_usd_ticks: Any = None
    estimated_cost: Any = None
    cache_creation: Any = None
    search_context_size: Any = None
    num_search_queries: Any = None
    server_tool_use: Any = None
    server_tool_use_details: Any = None
    service_tier: Any = None


class Completion(msgspec.Struct):
    """Decoding succeeds only if every field of the gateway's API is present with its type."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: UsageCounts
    error: Any = None
    service_tier: Any = None


def has_output(delta: Mapping[str, Any]) -> bool:
    return any(delta.get(name) for name in _OUTPUT_FIELDS)


def add_reasoning_content(fields: dict[str, Any]) -> None:
    """Copies reasoning to `reasoning_content`, the name that clients look for.

    Vendors call it `reasoning` (OpenRouter, Groq, Cerebras, Together, Ollama), or have it only in `reasoning_details`
    (Snowflake).
    """
    if fields.get("reasoning_content"):
        return
    text = fields.get("reasoning")
    if not isinstance(text, str) or not text:
        text = _text_of_details(fields.get("reasoning_details"))
    if text:
        fields["reasoning_content"] = text


def _text_of_details(details: object) -> str:
    if not isinstance(details, list):
        return ""
    found = [part.get("text") or part.get("summary") for part in details if isinstance(part, dict)]
    return "".join(text for text in found if isinstance(text, str))


def flatten_content(fields: dict[str, Any]) -> None:
    """Turns Mistral's lists of content parts (https://docs.mistral.ai/capabilities/reasoning) into texts: text becomes
    `content`, thinking `reasoning_content`."""
    content = fields.get("content")
    if not isinstance(content, list):
        if content is not None and not isinstance(content, str):
            fields["content"] = None
        return
    text, thinking = [], []
    for part in content:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict) and part.get("type") == "thinking":
            thinking.append(_text_of(part.get("thinking")))
        elif isinstance(part, dict):
            text.append(_text_of(part.get("text")))
    fields["content"] = "".join(text)
    if thinking:
        fields["reasoning_content"] = "".join(thinking)


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text_of(part.get("text")) for part in value if isinstance(part, dict))
    return ""


def time_of(created: object) -> int:
    """Unix seconds; the current time if the provider sends 0 (Snowflake) or nothing."""
    if isinstance(created, int | float) and not isinstance(created, bool) and 1 <= created < _LAST_SECOND:
        return int(created)
    return int(time.time())


def made_up_id(seed: str, choice: int, number: int) -> str:
    """An id for a call without one: unique, and the same for the same answer, which `seed` names."""
    return "call_" + blake2b(f"{seed}/{choice}/{number}".encode("utf-8", "replace"), digest_size=12).hexdigest()


def arguments_text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else msgspec.json.encode(arguments).decode()


def whole_arguments(arguments: object) -> str:
    text = arguments_text(arguments)
    return text if text.strip() else NO_ARGUMENTS


def replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    """Empty unless the piece occurs exactly once."""
    return data.replace(old, new) if data.count(old) == 1 else b""


def with_reasoning_content(data: bytes, delta: Delta) -> bytes | None:
    """Inserts `reasoning` under the name `reasoning_content` too; decoding and encoding the chunk would take three
    times as long. None if the bytes do not allow that."""
    if not isinstance(delta.reasoning, str) or not delta.reasoning or data.count(_REASONING) != 1:
        return None
    return data.replace(_REASONING, b'"reasoning_content":%b,%b' % (_encode(delta.reasoning), _REASONING))
