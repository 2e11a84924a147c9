from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.anthropic.answer_tool import answers_by_tool, is_answer
from integrations.providers.anthropic.blocks import has_own
from integrations.providers.anthropic.finish import (
    finish_reason,
    own_fields,
    refusal_text,
    reported_failure,
)
from integrations.providers.anthropic.shapes import Block, Message, usage_in
from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.common.claude import CLAUDE
from integrations.providers.common.completion import (
    ParsedChoice,
    reasoning_encrypted,
    reasoning_text,
    tool_call,
    url_citation,
    whole,
)
from integrations.providers.common.odd_usage import despite_usage
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import unusable

_decode = despite_usage(lenient(msgspec.json.Decoder(Message).decode))
_decode_raw = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def read_message(body: bytes, *, provider: str, is_passed_on: bool = True) -> Message:
    """Returns the message in an answer. Where the body itself is not passed on, all of its text has to be UTF-8, since
    own blocks are. Raises ProviderError: the error that the body carries, UNUSABLE when it is no answer."""
    try:
        message = _decode(body)
        if not is_passed_on and not body.isascii():
            body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unusable("the answer is not a message", provider) from error
    if message.error is not None or message.type == "error":
        raise reported_failure(message.error, provider=provider)
    if message.content is None:
        raise unusable("the answer holds no content", provider)
    return message


def parse_response(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    """Returns the parsed answer. Raises ProviderError as `read_message` does."""
    message = read_message(body, provider=provider, is_passed_on=False)
    content = message.content or []
    blocks = _as_text(content) if answers_by_tool(request) else content
    answer = _answer(message, blocks, provider=provider)
    if has_own(content):
        answer.specific["content"] = _decode_raw(body)["content"]
    return whole(
        [answer],
        # The id is derived from the body, so that the same bytes give the same completion.
        completion_id=message.id or f"msg_{hashlib.sha256(body).hexdigest()[:24]}",
        model=message.model or request.model,
        usage=usage_in(message, request.model),
    )


def _as_text(blocks: list[Block]) -> list[Block]:
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
    """The entry of `reasoning_details` that a client must send back unchanged.

    A thinking block may be signed but empty, if its text was omitted. `index` is the block's place in the returned
    message: after as many thinking blocks, calls and (as one block) text. A model may think between its calls, and its
    blocks must not be moved
    (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#interleaved-thinking).
    """
    if block.type == "redacted_thinking":
        return reasoning_encrypted(str(block.data or ""), format=CLAUDE, index=index)
    return reasoning_text(block.thinking or "", format=CLAUDE, signature=block.signature or "", index=index)


def url_citations(citations: Any, start: int, end: int) -> list[Mapping[str, Any]]:
    """The annotations of the text from `start` to `end` in the whole answer: each page once, however often it is cited.
    Documents are left out: they have no address, and annotations name web pages only."""
    found: dict[str, Mapping[str, Any]] = {}
    for citation in citations if isinstance(citations, list) else ():
        url = (citation.get("url") or citation.get("source")) if isinstance(citation, Mapping) else None
        if isinstance(url, str) and url.startswith(("https://", "http://")):
            found.setdefault(url, url_citation(url, str(citation.get("title") or ""), start, end))
    return list(found.values())


def arguments_of(block: Block) -> str:
    text = bytes(block.input).decode()
    return text if text.startswith("{") else "{}"


def call_id(block: Block, position: int) -> str:
    return block.id or f"call_{position}"
