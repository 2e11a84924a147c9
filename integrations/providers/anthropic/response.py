"""Translates a whole answer of the Messages API to a chat completion."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from integrations.providers.anthropic.answer_tool import answers_by_tool, is_answer
from integrations.providers.anthropic.blocks import has_own
from integrations.providers.anthropic.citations import url_citations
from integrations.providers.anthropic.finish import (
    finish_reason,
    own_fields,
    refusal_text,
    reported_failure,
    unusable,
)
from integrations.providers.anthropic.shapes import Block, Message, usage_in
from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.common.completion import ParsedChoice, reasoning_encrypted, reasoning_text, tool_call, whole
from integrations.providers.common.odd_usage import despite_usage
from integrations.providers.common.surrogates import lenient

FORMAT = "anthropic-claude-v1"
_decode = despite_usage(lenient(msgspec.json.Decoder(Message).decode))
_decode_raw = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def parse_response(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    """Returns the parsed answer. Raises ProviderError: the error that the body carries, UNUSABLE when it is no
    answer."""
    try:
        message = _decode(body)
        if not body.isascii():
            # The whole body is decoded because msgspec checks only the fields that it reads, and own blocks are passed
            # on completely.
            body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unusable("the answer is not a message", provider=provider) from error
    if message.error is not None or message.type == "error":
        raise reported_failure(message.error, provider=provider)
    if message.content is None:
        raise unusable("the answer holds no content", provider=provider)
    blocks = _as_text(message.content) if answers_by_tool(request) else message.content
    answer = _answer(message, blocks, provider=provider)
    if has_own(message.content):
        answer.specific["content"] = _decode_raw(body)["content"]
    return whole(
        [answer],
        # The id is derived from the body, so that the same bytes give the same completion.
        completion_id=message.id or f"msg_{hashlib.sha256(body).hexdigest()[:24]}",
        model=message.model or request.model,
        usage=usage_in(message, request.model),
    )


def _as_text(blocks: list[Block]) -> list[Block]:
    """Returns the blocks of an answer that came as the input of a tool, as text and without the other texts; unchanged
    blocks when the tool was not called."""
    answers = [Block("text", arguments_of(block)) for block in blocks if is_answer(block)]
    return (
        [*(block for block in blocks if block.type != "text" and not is_answer(block)), answers[0]]
        if answers
        else blocks
    )


def _answer(message: Message, blocks: list[Block], *, provider: str) -> ParsedChoice:
    answer = ParsedChoice()
    texts: list[str] = []
    thoughts: list[str] = []
    length = 0
    for block in blocks:
        match block.type:
            case "text" if block.text:
                texts.append(block.text)
                answer.annotations += url_citations(block.citations, length, length + len(block.text))
                length += len(block.text)
            case "thinking" | "redacted_thinking":
                place = len(thoughts) + len(answer.tool_calls) + any(text.strip() for text in texts)
                thoughts.append(block.thinking or "")
                answer.reasoning_details.append(reasoning_detail(block, place))
            case "tool_use":
                answer.tool_calls.append(
                    tool_call(call_id(block, len(answer.tool_calls)), block.name or "", arguments_of(block))
                )
    answer.content = None if answer.tool_calls and not texts else "".join(texts)
    answer.reasoning = "".join(thoughts)
    answer.refusal = refusal_text(message.stop_details)
    if isinstance(message.container, dict):
        answer.extra = {"container": message.container}  # The next request has to name the container with its files.
    answer.specific = own_fields(
        message.stop_reason,
        stop_sequence=message.stop_sequence,
        stop_details=message.stop_details,
        context_management=message.context_management,
        diagnostics=message.diagnostics,
        input_transformations=message.input_transformations,
    )
    answer.finish_reason = finish_reason(
        message.stop_reason,
        called_tools=bool(answer.tool_calls),
        has_content=bool(texts or answer.tool_calls or has_own(blocks)),
        provider=provider,
    )
    return answer


def reasoning_detail(block: Block, index: int) -> dict[str, object]:
    """Returns the entry of `reasoning_details` that a client has to send back unchanged. A thinking block may be signed
    and empty, when its text was omitted. `index` is the block's place in the message as it will come back: behind as
    many thinking blocks, calls and, if there was any, the text, which is one block then. A model may think between its
    calls, and its blocks must not be moved
    (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#interleaved-thinking)."""
    if block.type == "redacted_thinking":
        return reasoning_encrypted(str(block.data or ""), format=FORMAT, index=index)
    return reasoning_text(block.thinking or "", format=FORMAT, signature=block.signature or "", index=index)


def arguments_of(block: Block) -> str:
    """Returns the input of the call as the JSON text that arrived."""
    text = bytes(block.input).decode()
    return text if text.startswith("{") else "{}"


def call_id(block: Block, position: int) -> str:
    return block.id or f"call_{position}"
