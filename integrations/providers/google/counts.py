"""Usage, log probabilities and times of Gemini's answers in our terms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeGuard

import msgspec

from integrations.providers.base import Usage
from integrations.providers.google.shapes import UsageMetadata, has, plain


def is_counted(counts: UsageMetadata | None) -> TypeGuard[UsageMetadata]:
    """Vertex names only a traffic type in early events."""
    return counts is not None and (counts.prompt_token_count is not None or counts.total_token_count is not None)


def read_usage(counts: UsageMetadata | None) -> Usage | None:
    """None when nothing was counted. Thoughts are counted beside the candidates, and what Google's own tools put into
    the prompt beside the prompt."""
    if not is_counted(counts):
        return None
    prompt = _count(counts.prompt_token_count) + _count(counts.tool_use_prompt_token_count)
    thoughts = _count(counts.thoughts_token_count)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=_count(counts.candidates_token_count) + thoughts,
        cache_read_tokens=min(_count(counts.cached_content_token_count), prompt),
        reasoning_tokens=thoughts,
    )


def _count(value: int | None) -> int:
    return value if value is not None and value > 0 else 0


def seconds_of(time: str | None) -> int | None:
    """Unix time of Vertex's `createTime`; the Gemini API tells none."""
    if not time:
        return None
    try:
        return int(datetime.fromisoformat(time).timestamp())
    except ValueError:
        return None


def read_logprobs(raw: msgspec.Raw) -> dict[str, Any] | None:
    """OpenAI's `logprobs` out of a `logprobsResult`: chosen tokens, and the alternatives to each."""
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
    # Protocol buffers leave zeros out.
    return {"token": text, "logprob": token.get("logProbability", 0.0), "bytes": list(text.encode())}
