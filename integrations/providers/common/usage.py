from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.common.charges import CHARGES, count_of, searches, served_tier, stated_cost, stated_count
from integrations.providers.usage import Usage, with_total

_NONE: Mapping[str, Any] = {}
_DEFAULT_TIER = "default"  # OpenAI's name of the standard tier is `default`.


# Vendors state the counts under these names, OpenAI's of chat completions and of responses, and Bedrock's.
_PROMPT = ("prompt_tokens", "input_tokens", "promptTokens", "inputTokens")
_COMPLETION = ("completion_tokens", "output_tokens", "completionTokens", "outputTokens")
_DETAILS = ("prompt_tokens_details", "completion_tokens_details")
_TOTAL = ("total_tokens", "totalTokens")


def read_usage(usage: Mapping[str, Any], service_tier: object = None) -> Usage | None:
    """The counts in the gateway's convention (see `Usage`); None if none can be read.

    Missing and invalid counts are 0, unless the total shows them; details never exceed wholes. A total alone counts as
    a prompt, and sets `estimated`. `service_tier` is the tier that the answer names beside its usage; Mistral names it
    inside. xAI's Grok leaves reasoning out of `completion_tokens` while `total_tokens` includes it
    (https://docs.x.ai/docs/guides/reasoning): it is recognised by the total and added.
    """
    get = usage.get
    prompt, completion = get("prompt_tokens"), get("completion_tokens")
    is_odd = is_total = False
    if type(prompt) is not int or type(completion) is not int or prompt <= 0 or completion <= 0:
        counts = _counts(usage)
        if counts is None:
            return None
        is_odd, (prompt, completion, is_total) = True, counts
    prompt_details = _details(usage, "prompt_tokens_details")
    completion_details = _details(usage, "completion_tokens_details")
    if is_odd:
        prompt_details = prompt_details or _details(usage, "input_tokens_details")
        completion_details = completion_details or _details(usage, "output_tokens_details")
    reasoning = count_of(completion_details.get("reasoning_tokens") or get("reasoning_tokens"))
    if reasoning and count_of(get("total_tokens")) == prompt + completion + reasoning:
        completion += reasoning
    cached = _first_count(prompt_details, usage, "cached_tokens", "prompt_cache_hit_tokens")
    # `num_cached_tokens` is Mistral's older name.
    cache_read = min(cached or count_of(get("num_cached_tokens")), prompt)
    cache_write = _first_count(prompt_details, usage, "cache_write_tokens", "cache_creation_input_tokens")
    tier = service_tier or usage.get("service_tier")
    found = Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cache_read_tokens=cache_read,
        cache_write_tokens=min(cache_write, prompt - cache_read),
        reasoning_tokens=min(reasoning, completion),
        service_tier=served_tier(tier) if tier and tier != _DEFAULT_TIER else "",
        estimated=is_total,
    )
    if CHARGES.isdisjoint(usage) and not _names_modality(prompt_details) and not _names_modality(completion_details):
        return found
    return _with_charges(found, usage, prompt_details, completion_details)


def _counts(usage: Mapping[str, Any]) -> tuple[int, int, bool] | None:
    """Prompt tokens, completion tokens, and whether the first number counts both. None without a count or a cost."""
    prompt, completion = _named(usage, _PROMPT), _named(usage, _COMPLETION)
    counts = with_total(prompt or 0, completion or 0, _named(usage, _TOTAL) or 0)
    if prompt is None and completion is None and not counts[0] and CHARGES.isdisjoint(usage):
        return None
    return counts


def _named(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    found = [count for name in names if (count := stated_count(usage.get(name))) is not None]
    return next(filter(None, found), 0 if found else None)


def _names_modality(details: Mapping[str, Any]) -> object:
    return details.get("audio_tokens") or details.get("image_tokens")


def _with_charges(
    found: Usage, usage: Mapping[str, Any], prompt_details: Mapping[str, Any], completion_details: Mapping[str, Any]
) -> Usage:
    prompt, completion = found.prompt_tokens, found.completion_tokens
    cached_for_1h = count_of(_details(usage, "cache_creation").get("ephemeral_1h_input_tokens"))
    searched, search_context_size = searches(usage)
    return msgspec.structs.replace(
        found,
        cache_write_1h_tokens=min(cached_for_1h, found.cache_write_tokens),
        audio_prompt_tokens=min(count_of(prompt_details.get("audio_tokens")), prompt),
        audio_completion_tokens=min(count_of(completion_details.get("audio_tokens")), completion),
        image_prompt_tokens=min(count_of(prompt_details.get("image_tokens")), prompt),
        image_completion_tokens=min(count_of(completion_details.get("image_tokens")), completion),
        searches=searched,
        search_context_size=search_context_size,
        stated_cost=stated_cost(usage),
    )


def usage_object(usage: Usage) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.cache_read_tokens or usage.cache_write_tokens:
        fields["prompt_tokens_details"] = {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        }
    if usage.reasoning_tokens:
        fields["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    if usage.estimated:
        fields["estimated"] = True
    return fields


def completed_usage(usage: Mapping[str, Any], counts: Usage) -> dict[str, Any]:
    """The provider's own object with the three counts of the gateway's API present as integers; `counts` were read from
    it."""
    if counts.estimated or not all(map(_is_readable, map(usage.get, _DETAILS))):
        return restated_usage(usage, counts)
    fields = dict(usage)
    if not _is_count(fields.get("prompt_tokens")):
        fields["prompt_tokens"] = counts.prompt_tokens
    if not _is_count(fields.get("completion_tokens")):
        fields["completion_tokens"] = counts.completion_tokens
    if not _is_count(fields.get("total_tokens")):
        fields["total_tokens"] = fields["prompt_tokens"] + fields["completion_tokens"]
    return fields


def restated_usage(usage: Mapping[str, Any], counts: Usage) -> dict[str, Any]:
    return {**{name: value for name, value in usage.items() if name not in _DETAILS}, **usage_object(counts)}


def _is_readable(details: object) -> bool:
    if not isinstance(details, Mapping):
        return details is None
    return all(value is None or type(value) in (int, float) for value in details.values())


def _is_count(value: object) -> bool:
    """False for a 0, which a count read elsewhere replaces."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _first_count(details: Mapping[str, Any], usage: Mapping[str, Any], name: str, vendor_name: str) -> int:
    return count_of(details.get(name)) or count_of(usage.get(vendor_name)) or count_of(usage.get(name))


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = usage.get(name)
    # Most usage has no details, and a check against an abstract class costs more than all of the rest.
    return value if value is not None and isinstance(value, Mapping) else _NONE
