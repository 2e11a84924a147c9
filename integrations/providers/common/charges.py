from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

# xAI's ticks: 10,000,000,000 of them are one dollar (https://docs.x.ai/docs/key-information/usage).
_TICK_PLACES = 10
# No real answer costs as much, so a larger amount is an error.
_MAX_DOLLARS = Decimal(1_000_000)
# Answers name the tier of the base prices in several ways, or leave it empty.
_STANDARD = frozenset({"", "auto", "default", "standard", "on_demand", "unspecified", "traffic_type_unspecified"})
# OpenAI prices fast mode as `priority` (https://platform.openai.com/docs/guides/priority-processing). Vertex AI's
# names: https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentResponse#TrafficType.
_SAME_TIER = {
    "fast": "priority",
    "batches": "batch",
    "on_demand_priority": "priority",
    "on_demand_flex": "flex",
}
_TIER_LENGTH = 40
# No real answer has as many tokens, and floats are exact below it.
_MAX_COUNT = 10**15
# The fields of a usage that hold charges besides token counts.
CHARGES = frozenset(
    {
        "cost",
        "cost_in_usd_ticks",
        "estimated_cost",
        "cache_creation",
        "search_context_size",
        "server_tool_use",
        "server_tool_use_details",
    }
)


def stated_cost(usage: Mapping[str, Any]) -> Decimal | None:
    """The cost of the answer in US dollars as the provider states it; None if it states none.

    OpenRouter (https://openrouter.ai/docs/use-cases/usage-accounting) and its followers state `cost`, which with a
    customer's own key leaves out the vendor's charge. Perplexity states an object with `total_cost`
    (https://docs.perplexity.ai/api-reference/chat-completions-post), xAI `cost_in_usd_ticks`, DeepInfra
    `estimated_cost`. A 0 of Perplexity or xAI means that they have not counted yet, or that another provider (Azure)
    sells their model.
    """
    cost = usage.get("cost")
    if isinstance(cost, Mapping):
        return _dollars(cost.get("total_cost")) or None
    if cost is not None:
        return _with_own_key(_dollars(cost), usage)
    ticks = _dollars(usage.get("cost_in_usd_ticks"), maximum=_MAX_DOLLARS.scaleb(_TICK_PLACES))
    if ticks:
        return ticks.scaleb(-_TICK_PLACES)
    return _dollars(usage.get("estimated_cost"))


def _with_own_key(cost: Decimal | None, usage: Mapping[str, Any]) -> Decimal | None:
    """With the customer's own key, the stated cost is only the broker's fee; returns the full cost."""
    if cost is None or usage.get("is_byok") is not True:
        return cost
    details = usage.get("cost_details")
    upstream = _dollars(details.get("upstream_inference_cost")) if isinstance(details, Mapping) else None
    return None if upstream is None else cost + upstream


def searches(usage: Mapping[str, Any]) -> tuple[int, str]:
    """The number of charged searches, and their size. Perplexity searches for every answer."""
    size = usage.get("search_context_size")
    if isinstance(size, str) and size:
        return count_of(usage.get("num_search_queries")) or 1, size
    for name in ("server_tool_use_details", "server_tool_use"):
        details = usage.get(name)
        if isinstance(details, Mapping):
            return count_of(details.get("web_search_requests")), ""
    return 0, ""


def served_tier(name: object) -> str:
    """The service tier in the names that prices use; empty for the standard tier."""
    if not isinstance(name, str):
        return ""
    lower = name.lower()
    return "" if lower in _STANDARD or len(lower) > _TIER_LENGTH else _SAME_TIER.get(lower, lower)


def stated_count(value: object) -> int | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < _MAX_COUNT else None


def count_of(value: object) -> int:
    if value is None or type(value) is int:
        # Nearly all counts are of these types.
        return value if value is not None and 0 < value < _MAX_COUNT else 0
    return stated_count(value) or 0


def _dollars(value: object, *, maximum: Decimal = _MAX_DOLLARS) -> Decimal | None:
    """Reads a float by its shortest exact text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount: Decimal = msgspec.convert(value, Decimal)
    except msgspec.ValidationError:
        return None
    return amount if amount.is_finite() and 0 <= amount < maximum else None
