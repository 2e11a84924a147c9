"""Reads the token counts and log probabilities of Cohere's answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.common.charges import count_of
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
    """Returns the object in the field, an empty one when the field holds no object."""
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}
