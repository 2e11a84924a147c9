"""Reads answers of Cohere, whole ones as chat completions: what they used, how they end, what they cite."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.common import completion
from integrations.providers.common.charges import count_of
from integrations.providers.common.completion import ParsedChoice, url_citation
from integrations.providers.common.failure_reasons import reason_in
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.redaction import scrub
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import FailureKind, ProviderError, unusable
from integrations.providers.usage import Usage


def usage_of(usage: Any) -> Usage | None:
    """Returns the usage; None without counts. `tokens` counts what the model read and wrote, including Cohere's own
    preamble; `billed_units` counts what is charged, without the preamble and the reasoning
    (https://docs.cohere.com/docs/how-does-cohere-pricing-work). `cached_tokens` is a part of `tokens`.

    A count that `tokens` lacks is estimated by the billed one. Usage that still lacks one is not marked here: marked
    usage with one count would be read as a total."""
    if not isinstance(usage, Mapping):
        return None
    tokens, billed = object_in(usage, "tokens"), object_in(usage, "billed_units")
    if not tokens and not billed:
        return None
    read, written = count_of(tokens.get("input_tokens")), count_of(tokens.get("output_tokens"))
    prompt = read or count_of(billed.get("input_tokens"))
    completion = written or count_of(billed.get("output_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cache_read_tokens=min(count_of(usage.get("cached_tokens")), prompt),
        reasoning_tokens=min(count_of(tokens.get("reasoning_tokens")), completion),
        billed_prompt_tokens=count_of(billed.get("input_tokens")) if billed else None,
        billed_completion_tokens=count_of(billed.get("output_tokens")) if billed else None,
        estimated=bool(prompt and completion) and not (read and written),
    )


def logprobs_of(items: Any) -> dict[str, Any] | None:
    """Returns OpenAI's `logprobs`. Cohere returns a piece of text with the log probabilities of its tokens, but not the
    tokens' texts, so the piece gets their sum."""
    content = []
    for item in items if isinstance(items, list) else [items]:
        if not isinstance(item, Mapping):
            continue
        text, values = item.get("text"), item.get("logprobs")
        numbers = isinstance(values, list) and all(isinstance(value, (int, float)) for value in values)
        if isinstance(text, str) and values and numbers:
            content.append({"token": text, "logprob": sum(values), "bytes": list(text.encode()), "top_logprobs": []})
    return {"content": content} if content else None


def object_in(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


def url_citations(citation: Mapping[str, Any], offset: int) -> Iterator[dict[str, Any]]:
    """Yields annotations for the sources with an address. `offset` is where the cited block starts in `content`."""
    if citation.get("type") not in (None, "TEXT_CONTENT"):
        return
    start, end = citation.get("start"), citation.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        return
    sources = citation.get("sources")
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, Mapping) and (url := _address(source)):
            yield url_citation(url, _title(source), start + offset, end + offset)


def _address(source: Mapping[str, Any]) -> str:
    held = _held(source)
    for candidate in (held.get("url"), source.get("id")):
        if isinstance(candidate, str) and candidate.startswith(("http://", "https://")):
            return candidate
    return ""


def _title(source: Mapping[str, Any]) -> str:
    title = _held(source).get("title")
    return title if isinstance(title, str) else ""


def _held(source: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_in(source, "tool_output") or object_in(source, "document")


_FINISH_REASONS = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "TOOL_CALL": "tool_calls",
    "ERROR_TOXIC": "content_filter",
}
_FAILURES = {
    "ERROR": FailureKind.UNAVAILABLE,
    "TIMEOUT": FailureKind.TIMEOUT,
    "USER_CANCEL": FailureKind.UNAVAILABLE,
}


def finish_reason(reason: str, *, called_tools: bool) -> str:
    """Returns the finish reason. Reasons are those of
    https://docs.cohere.com/reference/chat#response.body.finish_reason and of the previous API
    (`cohere.types.FinishReason`); an unknown one behind an answer is an ordinary end (see `failed`)."""
    name = _FINISH_REASONS.get(reason, "stop")
    return "tool_calls" if called_tools and name == "stop" else name


def unknown_reason(reason: str) -> dict[str, str]:
    """Returns the field of `provider_specific_fields` that names an unknown reason, which counts as an ordinary end."""
    return {"finish_reason": reason} if reason and reason not in _FINISH_REASONS else {}


def failed(
    reason: str, message: Any, usage: Usage | None, *, provider: str, called_tools: bool, has_text: bool
) -> ProviderError | None:
    """Returns the failure of an answer that broke off or is empty, with its usage, which is billed; None for a proper
    answer."""
    kind = _FAILURES.get(reason) or (FailureKind.UNAVAILABLE if message else None)
    text = message if isinstance(message, str) and message else f"the provider ended the answer: {reason.lower()}"
    if kind is None and reason == "TOOL_CALL" and not called_tools:
        kind, text = FailureKind.UNUSABLE, "the answer announces a call and holds none"
    elif kind is None and reason not in _FINISH_REASONS and not (called_tools or has_text):
        kind, text = (
            FailureKind.UNUSABLE,
            f"the answer is empty and ended for an unknown reason ({reason or 'none given'})",
        )
    if kind is None:
        return None
    kind = reason_in(None, text, None, provider=provider) or kind
    is_failed_generation = kind is FailureKind.UNUSABLE
    return ProviderError(
        scrub(text), kind=kind, provider=provider, status=200, usage=usage, is_failed_generation=is_failed_generation
    )


_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def parse_response(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unusable("the answer is not a JSON object", provider) from error
    message = answer.get("message")
    if answer.get("error") or (isinstance(message, str) and message):
        raise failure_in_body(answer, provider=provider)
    if not isinstance(message, Mapping):
        raise unusable("the answer holds no message", provider)
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
