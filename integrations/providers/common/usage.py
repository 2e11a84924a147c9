"""Reads token counts from the usage objects of the OpenAI dialect, under all names that vendors give the details."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.common.charges import CHARGES, searches, served_tier, stated_cost
from integrations.providers.usage import Usage

_NONE: Mapping[str, Any] = {}
_DEFAULT_TIER = "default"  # OpenAI's name of the standard tier is `default`.


def read_usage(usage: Mapping[str, Any], service_tier: object = None) -> Usage:
    """Returns the counts in the gateway's convention (see `Usage`). Missing and invalid counts are 0; details never
    exceed wholes. `service_tier` is the tier that the answer names beside its usage; Mistral names it inside. xAI's
    Grok leaves reasoning out of `completion_tokens` while `total_tokens` includes it
    (https://docs.x.ai/docs/guides/reasoning); it is recognised by the total and added."""
    get = usage.get
    prompt, completion = _count(get("prompt_tokens")), _count(get("completion_tokens"))
    prompt_details = _details(usage, "prompt_tokens_details")
    completion_details = _details(usage, "completion_tokens_details")
    reasoning = _count(completion_details.get("reasoning_tokens")) or _count(get("reasoning_tokens"))
    if reasoning and _count(get("total_tokens")) == prompt + completion + reasoning:
        completion += reasoning
    cached = _first_count(prompt_details, usage, "cached_tokens", "prompt_cache_hit_tokens")
    # `num_cached_tokens` is Mistral's older name.
    cache_read = min(cached or _count(get("num_cached_tokens")), prompt)
    cache_write = _first_count(prompt_details, usage, "cache_write_tokens", "cache_creation_input_tokens")
    tier = service_tier or usage.get("service_tier")
    found = Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cache_read_tokens=cache_read,
        cache_write_tokens=min(cache_write, prompt - cache_read),
        reasoning_tokens=min(reasoning, completion),
        service_tier=served_tier(tier) if tier and tier != _DEFAULT_TIER else "",
    )
    if CHARGES.isdisjoint(usage) and not _names_modality(prompt_details) and not _names_modality(completion_details):
        return found
    return _with_charges(found, usage, prompt_details, completion_details)


def _names_modality(details: Mapping[str, Any]) -> object:
    return details.get("audio_tokens") or details.get("image_tokens")


def _with_charges(
    found: Usage, usage: Mapping[str, Any], prompt_details: Mapping[str, Any], completion_details: Mapping[str, Any]
) -> Usage:
    """Returns the usage with the counts and charges that few answers have."""
    prompt, completion = found.prompt_tokens, found.completion_tokens
    cached_for_1h = _count(_details(usage, "cache_creation").get("ephemeral_1h_input_tokens"))
    searched, search_context_size = searches(usage)
    return msgspec.structs.replace(
        found,
        cache_write_1h_tokens=min(cached_for_1h, found.cache_write_tokens),
        audio_prompt_tokens=min(_count(prompt_details.get("audio_tokens")), prompt),
        audio_completion_tokens=min(_count(completion_details.get("audio_tokens")), completion),
        image_prompt_tokens=min(_count(prompt_details.get("image_tokens")), prompt),
        image_completion_tokens=min(_count(completion_details.get("image_tokens")), completion),
        searches=searched,
        search_context_size=search_context_size,
        stated_cost=stated_cost(usage),
    )


def usage_object(usage: Usage) -> dict[str, Any]:
    """Returns the `usage` of the wire format, with details only where there are any."""
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


def completed_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the provider's own object with the three counts of the gateway's API present as integers."""
    counts = read_usage(usage)
    fields = dict(usage)
    if not _is_count(fields.get("prompt_tokens")):
        fields["prompt_tokens"] = counts.prompt_tokens
    if not _is_count(fields.get("completion_tokens")):
        fields["completion_tokens"] = counts.completion_tokens
    if not _is_count(fields.get("total_tokens")):
        fields["total_tokens"] = fields["prompt_tokens"] + fields["completion_tokens"]
    return fields


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _count(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, float) and value >= 0 and value == value and value != float("inf"):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _first_count(details: Mapping[str, Any], usage: Mapping[str, Any], name: str, vendor_name: str) -> int:
    return _count(details.get(name)) or _count(usage.get(vendor_name)) or _count(usage.get(name))


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = usage.get(name)
    # Most usage has no details, and a check against an abstract class costs more than all of the rest.
    return value if value is not None and isinstance(value, Mapping) else _NONE
