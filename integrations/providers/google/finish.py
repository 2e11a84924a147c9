"""How an answer of Gemini ends and what it used. The finish reasons:
https://ai.google.dev/api/generate-content#FinishReason, #BlockReason, and Vertex AI's own
(https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentResponse#finishreason)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeGuard

import msgspec

from integrations.providers.common.charges import count_of, served_tier
from integrations.providers.common.redaction import scrub
from integrations.providers.errors import ProviderError, unusable
from integrations.providers.google.models import model_named
from integrations.providers.google.shapes import NOTHING, PromptFeedback, UsageMetadata, has, plain, reason_named
from integrations.providers.usage import Usage, with_total

_AUDIO, _IMAGE = "AUDIO", "IMAGE"
# Modalities are keyed by name, and by number for clients that asked for `enum-encoding=int`.
_NONE: Mapping[str, int] = {}
_MODALITIES: Mapping[object, str] = {_AUDIO: _AUDIO, 4: _AUDIO, _IMAGE: _IMAGE, 2: _IMAGE}


def is_counted(counts: UsageMetadata | None) -> TypeGuard[UsageMetadata]:
    """Returns True for complete counts, since Vertex sends only a traffic type in early events."""
    return counts is not None and (counts.prompt_token_count is not None or counts.total_token_count is not None)


def read_usage(counts: UsageMetadata | None) -> Usage | None:
    """Returns the token counts; None when nothing was counted. Google counts thoughts separately from the candidates,
    and the prompt tokens of its own tools separately from the prompt. What the total alone shows is a prompt, and
    `estimated` is set."""
    if not is_counted(counts):
        return None
    prompt = max(0, counts.prompt_token_count or 0) + max(0, counts.tool_use_prompt_token_count or 0)
    candidates = max(0, counts.candidates_token_count or 0)
    thoughts = max(0, counts.thoughts_token_count or 0)
    completion, is_total = candidates + thoughts, False
    if not prompt or not completion:
        prompt, completion, is_total = with_total(prompt, completion, max(0, counts.total_token_count or 0))
    cached = min(max(0, counts.cached_content_token_count or 0), prompt)
    # Most answers have few of the details, and a call for each that is absent would cost more than all the rest.
    sent = _by_modality(counts.prompt_tokens_details)
    answered = _NONE if counts.candidates_tokens_details is NOTHING else _by_modality(counts.candidates_tokens_details)
    from_cache = _NONE if counts.cache_tokens_details is NOTHING else _by_modality(counts.cache_tokens_details)
    tier = "" if counts.service_tier is None else served_tier(counts.service_tier)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
        audio_prompt_tokens=min(sent.get(_AUDIO, 0), prompt),
        audio_completion_tokens=min(answered.get(_AUDIO, 0), candidates),
        cache_read_audio_tokens=min(from_cache.get(_AUDIO, 0), cached),
        image_prompt_tokens=min(sent.get(_IMAGE, 0), prompt),
        image_completion_tokens=min(answered.get(_IMAGE, 0), candidates),
        service_tier=tier or ("" if counts.traffic_type is None else served_tier(counts.traffic_type)),
        estimated=is_total,
    )


def with_searches(usage: Usage | None, groundings: Iterable[Mapping[str, Any]], model: str) -> Usage | None:
    """Returns the usage with the searches in the `groundingMetadata` of the candidates."""
    queries = [query for grounding in groundings for query in _queries(grounding)]
    if usage is None or not queries:
        return usage
    return msgspec.structs.replace(usage, searches=len(queries) if model_named(model).charges_by_query else 1)


def _queries(grounding: Mapping[str, Any]) -> list[str]:
    """Returns the queries of a search without empty ones, which are not charged."""
    queries = grounding.get("webSearchQueries")
    return [query for query in queries if isinstance(query, str) and query] if isinstance(queries, list) else []


def _by_modality(details: msgspec.Raw) -> Mapping[str, int]:
    """Returns the token counts by modality: https://ai.google.dev/api/generate-content#ModalityTokenCount"""
    encoded = bytes(details)
    if encoded.count(b"{") < 2 and (encoded == b"null" or b'"TEXT"' in encoded):
        return _NONE  # The detail of most answers is that all is text.
    found: dict[str, int] = {}
    listed = plain(details)
    for detail in listed if isinstance(listed, list) else ():
        named = detail.get("modality") if isinstance(detail, Mapping) else None
        modality = _MODALITIES.get(named) if isinstance(named, (str, int)) else None
        if modality is not None:
            found[modality] = found.get(modality, 0) + count_of(detail.get("tokenCount"))
    return found


def seconds_of(time: str | None) -> int | None:
    """Returns the Unix time of Vertex's `createTime`; the Gemini API sends none."""
    if not time:
        return None
    try:
        return int(datetime.fromisoformat(time).timestamp())
    except ValueError:
        return None


def read_logprobs(raw: msgspec.Raw) -> dict[str, Any] | None:
    """Returns OpenAI's `logprobs` from a `logprobsResult`: the chosen tokens, and the alternatives to each."""
    if not has(raw):
        return None
    result = plain(raw)
    chosen = _mappings(result, "chosenCandidates")
    tops = _mappings(result, "topCandidates")
    content = []
    for position, token in enumerate(chosen):
        alternatives = _mappings(tops[position], "candidates") if position < len(tops) else []
        content.append({**_logprob(token), "top_logprobs": [_logprob(other) for other in alternatives]})
    return {"content": content, "refusal": None}


def _mappings(holder: Any, name: str) -> list[Mapping[str, Any]]:
    found = holder.get(name) if isinstance(holder, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def _logprob(token: Mapping[str, Any]) -> dict[str, Any]:
    text = str(token.get("token") or "")
    # Protocol buffers omit zeros.
    return {"token": text, "logprob": token.get("logProbability", 0.0), "bytes": list(text.encode())}


FILTERED = "content_filter"
REASONS: Mapping[str | int | None, str] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    # The answer reached the limit of one request: Google's own SDK asks again with the answer's `continuationToken`.
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "MODEL_ARMOR",
            "ESCALATION",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
        ),
        FILTERED,
    ),
}
# With the following finish reasons the model failed in a call or was stopped, so that its text until then is not its
# answer.
_FAILED_GENERATIONS = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "PUP_LIMITED_DISABLED",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)


def finish_reason(native: str | int | None, *, called_tools: bool) -> str:
    """Google sends STOP for function calls too.

    An answer with content ends with `stop` under any other reason (OTHER, NO_IMAGE, an unknown one); `unusable_end`
    handles answers without content.
    """
    # Nearly all reasons are one of these names.
    reason = REASONS.get(native) or REASONS.get(reason_named(native), "stop")
    return "tool_calls" if called_tools and reason == "stop" else reason


class End(Protocol):
    @property
    def finished(self) -> str | int | None: ...

    @property
    def message(self) -> str: ...

    @property
    def has_content(self) -> bool: ...


def unusable_end(choice: End, *, provider: str, usage: Usage | None) -> ProviderError | None:
    """The failure of a failed call, or of an answer without content whose reason does not explain it; None for an
    answer.

    To the client an empty `stop` would look like the end of the work.
    """
    reason = reason_named(choice.finished)
    if reason not in _FAILED_GENERATIONS and (reason in REASONS or choice.has_content):
        return None
    message = f"the model's answer ended with {reason or 'no reason'} and cannot be used"
    text = scrub(f"{message}: {choice.message}" if choice.message else message)
    return unusable(text, provider, usage=usage, is_failed_generation=True)


def is_blocked(feedback: PromptFeedback | None) -> bool:
    return feedback is not None and bool(feedback.block_reason)
