"""The parts of chat completions and chunks that are read; decoding skips the rest."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.common.surrogates import lenient


class Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[ToolCall] | None = None
    annotations: list[dict[str, Any]] | None = None
    images: list[dict[str, Any]] | None = None
    container: Any = None
    provider_specific_fields: dict[str, Any] | None = None

    def is_text_alone(self) -> bool:
        return not (
            self.reasoning_content
            or self.reasoning_details
            or self.tool_calls
            or self.images
            or self.annotations
            or self.refusal
            or self.provider_specific_fields
        )


class Choice(msgspec.Struct):
    index: int = 0
    message: Message | None = None
    delta: Message | None = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


class Completion(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    created: int = 0
    choices: list[Choice] = []
    usage: dict[str, Any] | None = None


decode = lenient(msgspec.json.Decoder(Completion).decode)
