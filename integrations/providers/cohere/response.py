"""Translates a whole answer of Cohere to a chat completion."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.cohere.citations import url_citations
from integrations.providers.cohere.finish import failed, finish_reason, unknown_reason
from integrations.providers.cohere.usage import logprobs_of, usage_of
from integrations.providers.common import completion
from integrations.providers.common.completion import ParsedChoice
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import FailureKind, ProviderError

_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def parse_response(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    """Returns the parsed answer. Raises ProviderError: the error that the body carries, UNUSABLE when it is no
    answer."""
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unusable("the answer is not a JSON object", provider) from error
    message = answer.get("message")
    if answer.get("error") or (isinstance(message, str) and message):
        raise failure_in_body(answer, provider=provider)
    if not isinstance(message, Mapping):
        raise _unusable("the answer holds no message", provider)
    usage, reason = usage_of(answer.get("usage")), str(answer.get("finish_reason") or "")
    choice = _answer(message, reason, answer.get("logprobs"))
    failure = failed(
        reason, None, usage, provider=provider, called_tools=bool(choice.tool_calls), has_text=bool(choice.content)
    )
    if failure is not None:
        raise failure
    return completion.whole(
        [choice],
        completion_id=str(answer.get("id") or f"chatcmpl-{hashlib.sha256(body).hexdigest()[:24]}"),
        model=request.model,
        usage=usage,
    )


def _answer(message: Mapping[str, Any], reason: str, logprobs: Any) -> ParsedChoice:
    texts, thinking, starts = _contents(message.get("content"))
    specific: dict[str, Any] = {**unknown_reason(reason)}
    plan = message.get("tool_plan")
    if isinstance(plan, str) and plan:
        specific["tool_plan"] = plan
        # Cohere describes the plan as "A chain-of-thought style reflection and plan that the model generates when
        # working with tools."
        thinking.append(plan)
    calls: list[Mapping[str, Any]] = [
        _call(call, number) for number, call in enumerate(_objects(message, "tool_calls"))
    ]
    citations = _objects(message, "citations")
    if citations:
        specific["citations"] = citations
    text = "".join(texts)
    return ParsedChoice(
        content=text if text or not calls else None,
        reasoning="\n".join(thinking),
        tool_calls=calls,
        finish_reason=finish_reason(reason, called_tools=bool(calls)),
        annotations=[note for citation in citations for note in url_citations(citation, _offset(citation, starts))],
        logprobs=logprobs_of(logprobs),
        specific=specific,
        extra={"citations": citations} if citations else {},
    )


def _contents(content: Any) -> tuple[list[str], list[str], dict[int, int]]:
    """Returns texts, thoughts, and the offset of each block's text in the whole text."""
    texts: list[str] = []
    thinking: list[str] = []
    starts: dict[int, int] = {}
    length = 0
    for index, part in enumerate(content if isinstance(content, list) else []):
        starts[index] = length
        if not isinstance(part, Mapping):
            continue
        text, thought = part.get("text"), part.get("thinking")
        if isinstance(text, str):
            texts.append(text)
            length += len(text)
        elif isinstance(thought, str) and thought:
            thinking.append(thought)
    return texts, thinking, starts


def _offset(citation: Mapping[str, Any], starts: Mapping[int, int]) -> int:
    index = citation.get("content_index")
    return starts.get(index, 0) if isinstance(index, int) else 0


def _objects(fields: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    items = fields.get(name)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _call(call: Mapping[str, Any], number: int) -> dict[str, Any]:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    return completion.tool_call(
        str(call.get("id") or f"call_{number}"), str(function.get("name") or ""), str(function.get("arguments") or "{}")
    )


def _unusable(message: str, provider: str) -> ProviderError:
    return ProviderError(message, kind=FailureKind.UNUSABLE, provider=provider, status=200)
