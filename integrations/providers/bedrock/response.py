from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.bedrock.blocks import own_content
from integrations.providers.bedrock.models import Model, model_of
from integrations.providers.bedrock.schema import schema_tool
from integrations.providers.bedrock.shapes import (
    PROVIDER,
    SERVER_TOOL,
    Citation,
    Counts,
    Image,
    Struct,
    annotation,
    check_usable,
    finish_reason,
    image_part,
    reasoning_detail,
    specific_fields,
)
from integrations.providers.bedrock.tools import forbids_calls
from integrations.providers.common.completion import ParsedChoice, tool_call, whole
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.odd_usage import despite_usage
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import ProviderError, unusable


class ReasoningText(Struct):
    text: str | None = ""
    signature: str | None = ""


class ReasoningContent(Struct):
    reasoning_text: ReasoningText | None = None
    redacted_content: bytes | None = b""  # Redacted reasoning is base64 on the wire.


class ToolUse(Struct):
    tool_use_id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    type: str | None = None


class GeneratedText(Struct):
    text: str | None = ""


class CitationsContent(Struct):
    content: list[GeneratedText] | None = None
    citations: list[Citation] | None = None


class ContentBlock(Struct):
    text: str | None = None
    tool_use: ToolUse | None = None
    tool_result: Any = None
    reasoning_content: ReasoningContent | None = None
    citations_content: CitationsContent | None = None
    image: Image | None = None


class ConverseMessage(Struct):
    content: list[ContentBlock] | None = None


class Output(Struct):
    message: ConverseMessage | None = None


class Converse(Struct):
    output: Output | None = None
    stop_reason: str | None = ""
    usage: Counts | None = None
    additional_model_response_fields: Any = None
    trace: Any = None
    performance_config: Any = None
    service_tier: Any = None


_decode_any = lenient(msgspec.json.Decoder().decode)
_decode = despite_usage(lenient(msgspec.json.Decoder(Converse).decode))


class _Reader:
    def __init__(self, model: Model, fields: Mapping[str, Any]) -> None:
        self.model = model
        self.no_calls = forbids_calls(fields)
        self.schema_tool = schema_tool(fields, model)
        self.answer = ParsedChoice()
        self.text = ""
        self.answered = ""  # `answered` is the answer that came through the tool for a JSON schema.
        self.reasoning = ""
        self.images: list[dict[str, Any]] = []
        self.has_own = False  # `has_own` is True when the answer has one of Converse's own blocks.
        self._text_start = 0

    @property
    def has_output(self) -> bool:
        return bool(self.text or self.answered or self.answer.tool_calls or self.images)

    def read(self, block: ContentBlock) -> None:
        if block.text is not None:
            self._add_text(block.text)
        elif block.tool_use is not None:
            self._call(block.tool_use)
        elif block.reasoning_content is not None:
            self._reasoning(block.reasoning_content)
        elif block.citations_content is not None:
            self._citations(block.citations_content)
        elif block.tool_result is not None:
            self.has_own = True
        elif block.image is not None and block.image.source and block.image.source.bytes:
            self.images.append(image_part(block.image.format or "png", block.image.source.bytes))

    def finished(self, reason: str) -> ParsedChoice:
        answer = self.answer
        # Beside an answer that follows a schema any other text is only a comment on it.
        text = self.answered or self.text
        answer.content = text if text or not answer.tool_calls else None
        answer.reasoning = self.reasoning
        answer.finish_reason = reason
        if self.images:
            answer.extra = {"images": self.images}
        return answer

    def _add_text(self, text: str) -> None:
        self._text_start = len(self.text)
        self.text += text

    def _call(self, use: ToolUse) -> None:
        arguments = _arguments(use)
        if self.schema_tool and use.name == self.schema_tool:
            self.answered = self.answered or arguments
            return
        if use.type == SERVER_TOOL or self.no_calls:
            self.has_own = self.has_own or use.type == SERVER_TOOL
            return
        calls = self.answer.tool_calls
        known = {call["id"] for call in calls}
        call_id = use.tool_use_id if use.tool_use_id and use.tool_use_id not in known else f"call_{len(calls)}"
        calls.append(tool_call(call_id, use.name, arguments))

    def _reasoning(self, content: ReasoningContent) -> None:
        thought = content.reasoning_text or ReasoningText()
        self.reasoning += thought.text or ""
        details = self.answer.reasoning_details
        detail = reasoning_detail(
            self.model,
            len(details) + len(self.answer.tool_calls) + bool(self.text),
            thought.text or "",
            thought.signature or "",
            content.redacted_content or b"",
        )
        if detail is not None:
            details.append(detail)

    def _citations(self, content: CitationsContent) -> None:
        """Grounding puts a citation after the text that it supports; Claude puts it beside the text."""
        self.has_own = True
        text = "".join(part.text or "" for part in content.content or ())
        if text:
            self._add_text(text)
        for citation in content.citations or ():
            found = annotation(citation, self._text_start, len(self.text))
            if found is not None:
                self.answer.annotations.append(found)


def parse(request: ChatRequest, body: bytes) -> ParsedResponse:
    try:
        converse = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unusable("the answer is not of Converse's form", PROVIDER) from error
    message = converse.output.message if converse.output else None
    if message is None:
        raise _no_answer(body)
    reader = _Reader(model_of(request.model), request.fields)
    for block in message.content or ():
        reader.read(block)
    usage = converse.usage.usage(converse.service_tier) if converse.usage else None
    stop_reason = converse.stop_reason or ""
    called = bool(reader.answer.tool_calls)
    check_usable(stop_reason, has_output=reader.has_output, usage=usage)
    reader.answer.specific = specific_fields(converse)
    if reader.has_own and not reader.schema_tool:
        content = _decode_any(body)["output"]["message"]["content"]
        reader.answer.specific["content"] = own_content(content, no_calls=reader.no_calls)
    return whole(
        [reader.finished(finish_reason(stop_reason, called=called))],
        # Converse sends no id in the body, so one is derived from the body.
        completion_id=f"chatcmpl-{hashlib.sha256(body).hexdigest()[:24]}",
        model=request.model,
        usage=usage,
    )


def _arguments(use: ToolUse) -> str:
    arguments = bytes(use.input).decode()
    return "{}" if arguments == "null" else arguments


def _no_answer(body: bytes) -> ProviderError:
    decoded = msgspec.json.decode(body)
    if isinstance(decoded, dict) and isinstance(decoded.get("message") or decoded.get("error"), str):
        return failure_in_body(decoded, provider=PROVIDER)
    return unusable("the answer holds no message", PROVIDER)
