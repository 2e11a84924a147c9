"""What whole answers and streams have in common: counts, reasons, citations, log probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integrations.providers.common.failure_reasons import reason_in
from integrations.providers.common.failures import scrub
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage

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
    """https://docs.cohere.com/reference/chat#response.body.finish_reason, and those of the API before
    (`cohere.types.FinishReason`); an unknown one behind an answer is an ordinary end (see `failed`)."""
    name = _FINISH_REASONS.get(reason, "stop")
    return "tool_calls" if called_tools and name == "stop" else name


def unknown_reason(reason: str) -> dict[str, str]:
    """For `provider_specific_fields`, where a reason of tomorrow became an ordinary end."""
    return {"finish_reason": reason} if reason and reason not in _FINISH_REASONS else {}


def failed(
    reason: str, message: Any, usage: Usage | None, *, provider: str, called_tools: bool, has_text: bool
) -> ProviderError | None:
    """The error behind an answer that broke off or is none, with what it has used: it is billed."""
    kind = _FAILURES.get(reason) or (FailureKind.UNAVAILABLE if message else None)
    text = message if isinstance(message, str) and message else f"the provider ended the answer: {reason.lower()}"
    if kind is None and reason == "TOOL_CALL" and not called_tools:
        kind, text = FailureKind.UNUSABLE, "the answer announces a call and holds none"
    elif kind is None and reason not in _FINISH_REASONS and not (called_tools or has_text):
        kind, text = (
            FailureKind.UNUSABLE,
            f"the answer is empty and ended for an unknown reason ({reason or 'none told'})",
        )
    if kind is None:
        return None
    kind = reason_in(None, text, None, provider=provider) or kind
    is_botched = kind is FailureKind.UNUSABLE
    return ProviderError(scrub(text), kind=kind, provider=provider, status=200, usage=usage, is_botched=is_botched)


def usage_of(usage: Any) -> Usage | None:
    """`tokens` is what the model read and wrote, Cohere's own preamble included; `billed_units` is what it charges,
    without the preamble and the reasoning (https://docs.cohere.com/docs/how-does-cohere-pricing-work).
    `cached_tokens` is a part of the former. None when nothing is told."""
    if not isinstance(usage, Mapping):
        return None
    tokens, billed = _object(usage, "tokens"), _object(usage, "billed_units")
    if not tokens and not billed:
        return None
    counted = tokens or billed
    prompt, completion = _count(counted, "input_tokens"), _count(counted, "output_tokens")
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cache_read_tokens=min(_count(usage, "cached_tokens"), prompt),
        reasoning_tokens=min(_count(counted, "reasoning_tokens"), completion),
        billed_prompt_tokens=_count(billed, "input_tokens") if billed else None,
        billed_completion_tokens=_count(billed, "output_tokens") if billed else None,
    )


def url_citations(citation: Mapping[str, Any], offset: int) -> Iterator[dict[str, Any]]:
    """OpenAI's form, for sources that have an address. `offset` is where the cited block starts in `content`."""
    if citation.get("type") not in (None, "TEXT_CONTENT"):
        return
    start, end = citation.get("start"), citation.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        return
    sources = citation.get("sources")
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, Mapping) and (url := _address(source)):
            yield {
                "type": "url_citation",
                "url_citation": {
                    "url": url,
                    "title": _title(source),
                    "start_index": start + offset,
                    "end_index": end + offset,
                },
            }


def logprobs_of(items: Any) -> dict[str, Any] | None:
    """Cohere gives a text piece with the probabilities of its tokens, but not the tokens' texts: theirs is the sum."""
    content = []
    for item in items if isinstance(items, list) else [items]:
        if not isinstance(item, Mapping):
            continue
        text, values = item.get("text"), item.get("logprobs")
        numbers = isinstance(values, list) and all(isinstance(value, (int, float)) for value in values)
        if isinstance(text, str) and values and numbers:
            content.append({"token": text, "logprob": sum(values), "bytes": list(text.encode()), "top_logprobs": []})
    return {"content": content} if content else None


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
    return _object(source, "tool_output") or _object(source, "document")


def _object(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


def _count(fields: Mapping[str, Any], name: str) -> int:
    """The API's counts are numbers, now and then with a point: 12.0."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(value) if 0 < value < 1e15 else 0
