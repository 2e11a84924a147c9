"""Compares several answers by speed and by cost. Arithmetic only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Contender:
    """One model's figures; `cost_usd` is None when it is not known."""

    model: str
    succeeded: bool
    latency_ms: float
    total_tokens: int
    cost_usd: float | None


def compared(contenders: Sequence[Contender]) -> dict[str, Any]:
    """Returns the comparison. `fastest` and `cheapest` are models, the first named of equals, or None without an
    answer."""
    good = [contender for contender in contenders if contender.succeeded]
    priced = [(contender.cost_usd, contender) for contender in good if contender.cost_usd is not None]
    lowest = min((cost for cost, _ in priced), default=None)
    return {
        "fastest": min(good, key=lambda contender: contender.latency_ms).model if good else None,
        "cheapest": min(priced, key=lambda one: one[0])[1].model if priced else None,
        "total_cost_usd": _total(contenders),
        "cost_comparison": [_costs(contender, lowest) for contender in contenders],
    }


def tokens_per_dollar(tokens: int, cost_usd: float | None) -> float | None:
    """Returns the prompt and completion tokens that a dollar buys; None when the cost is unknown or zero."""
    return round(tokens / cost_usd, 2) if cost_usd else None


def _costs(contender: Contender, lowest: float | None) -> dict[str, Any]:
    counts = contender.succeeded
    cost = contender.cost_usd
    return {
        "model": contender.model,
        "cost_usd": cost,
        "total_tokens": contender.total_tokens,
        "tokens_per_dollar": tokens_per_dollar(contender.total_tokens, cost) if counts else None,
        "times_cheapest": round(cost / lowest, 4) if counts and cost is not None and lowest else None,
    }


def _total(contenders: Sequence[Contender]) -> float | None:
    """Returns the sum of the known costs; None when none is known."""
    known = [contender.cost_usd for contender in contenders if contender.cost_usd is not None]
    return round(sum(known), 10) if known else None
