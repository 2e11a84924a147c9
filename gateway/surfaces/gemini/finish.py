"""End, usage and sources of an answer in the Gemini API's terms
(https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.surfaces.checks import Json
from integrations.providers.common.usage import read_usage
from integrations.providers.usage import Usage

FILTER = "content_filter"
"""The finish reason of an answer that a vendor's filter has cut off: its message stands at its end and not in its text,
which a model's own refusal is."""
_FILTERED = "SAFETY"
_REASONS = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", FILTER: _FILTERED}
# These fields of Google's answers have the same names in `provider_specific_fields`.
_OF_CANDIDATES = (
    "citationMetadata",
    "continuationToken",
    "finishMessage",
    "groundingMetadata",
    "safetyRatings",
    "urlContextMetadata",
)
FEEDBACK = "promptFeedback"
_CREATED = "chatcmpl-"


def end_of(finish_reason: str | None, specific: Mapping[str, Any], refusal: str) -> Json:
    own = specific.get("finishReason")
    reason = own if isinstance(own, str) else reason_of(finish_reason)
    made: Json = {"finishReason": _FILTERED if refusal and reason == "STOP" else reason}
    if refusal:
        made["finishMessage"] = refusal
    return made | {name: specific[name] for name in _OF_CANDIDATES if specific.get(name) is not None}


def reason_of(finish_reason: str | None) -> str:
    return _REASONS.get(finish_reason or "", "STOP")


def is_blocked(specific: Mapping[str, Any]) -> bool:
    feedback = specific.get(FEEDBACK)
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def grounding_of(annotations: Iterable[Mapping[str, Any]], text: str) -> Json:
    """The sources of an answer with this text; empty without any. Google counts the bytes of the text."""
    chunks: list[Json] = []
    supports: list[Json] = []
    places: dict[str, int] = {}
    for annotation in annotations:
        cited = annotation.get("url_citation")
        url = cited.get("url") if isinstance(cited, dict) else None
        if not isinstance(cited, dict) or not isinstance(url, str):
            continue
        if url not in places:
            places[url] = len(chunks)
            chunks.append({"web": {"uri": url, "title": str(cited.get("title") or "")}})
        start, end = cited.get("start_index"), cited.get("end_index")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
            segment = {
                "startIndex": len(text[:start].encode()),
                "endIndex": len(text[:end].encode()),
                "text": text[start:end],
            }
            supports.append({"segment": segment, "groundingChunkIndices": [places[url]]})
    if not chunks:
        return {}
    return {"groundingMetadata": {"groundingChunks": chunks, **({"groundingSupports": supports} if supports else {})}}


def logprobs_of(logprobs: Mapping[str, Any] | None) -> Json:
    content = (logprobs or {}).get("content")
    if not isinstance(content, list) or not content:
        return {}
    chosen = [_token(entry) for entry in content]
    tops = [{"candidates": [_token(other) for other in entry.get("top_logprobs") or ()]} for entry in content]
    result: Json = {"chosenCandidates": chosen}
    if any(top["candidates"] for top in tops):
        result["topCandidates"] = tops
    return {"logprobsResult": result, "avgLogprobs": sum(one["logProbability"] for one in chosen) / len(chosen)}


def _token(entry: Mapping[str, Any]) -> Json:
    return {"token": entry.get("token") or "", "logProbability": entry.get("logprob") or 0.0}


def usage_of(usage: Mapping[str, Any] | None) -> Json:
    """Google counts thoughts apart from the candidates, and cached tokens as a part of the prompt."""
    counts = read_usage(usage or {}) or Usage()
    made: Json = {
        "promptTokenCount": counts.prompt_tokens,
        "candidatesTokenCount": counts.completion_tokens - counts.reasoning_tokens,
        "totalTokenCount": counts.prompt_tokens + counts.completion_tokens,
    }
    if counts.reasoning_tokens:
        made["thoughtsTokenCount"] = counts.reasoning_tokens
    if counts.cache_read_tokens:
        made["cachedContentTokenCount"] = counts.cache_read_tokens
    modalities = {"IMAGE": counts.image_prompt_tokens, "AUDIO": counts.audio_prompt_tokens}
    if any(modalities.values()):
        made["promptTokensDetails"] = _by_modality(counts.prompt_tokens, modalities)
    modalities = {"IMAGE": counts.image_completion_tokens, "AUDIO": counts.audio_completion_tokens}
    if any(modalities.values()):
        made["candidatesTokensDetails"] = _by_modality(made["candidatesTokenCount"], modalities)
    if usage is not None and usage.get("estimated"):
        made["estimated"] = True
    return made


def _by_modality(total: int, others: Mapping[str, int]) -> list[Json]:
    counts = {"TEXT": total - sum(others.values()), **others}
    return [{"modality": name, "tokenCount": count} for name, count in counts.items() if count > 0]


def origin_of(model: str | None, completion_id: str | None, request_id: str) -> Json:
    given = (completion_id or "").removeprefix(_CREATED)
    return {"modelVersion": model or "", "responseId": given or request_id}
