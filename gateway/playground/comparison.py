from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.wire.shown import shown_as
from gateway.playground.shapes import ComparedCost


@dataclass(frozen=True, slots=True)
class Contender:
    model: str
    succeeded: bool
    latency_ms: float
    total_tokens: int
    cost_usd: float | None


def compared(contenders: Sequence[Contender]) -> dict[str, Any]:
    """`fastest` and `cheapest` are models, the first named of equals, or None without an answer."""
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
    """Returns the prompt and completion tokens that a dollar buys; None if the cost is unknown or zero."""
    return round(tokens / cost_usd, 2) if cost_usd else None


def _costs(contender: Contender, lowest: float | None) -> ComparedCost:
    counts, cost = contender.succeeded, contender.cost_usd
    return shown_as(
        ComparedCost,
        contender,
        tokens_per_dollar=tokens_per_dollar(contender.total_tokens, cost) if counts else None,
        times_cheapest=round(cost / lowest, 4) if counts and cost is not None and lowest else None,
    )


def _total(contenders: Sequence[Contender]) -> float | None:
    known = [contender.cost_usd for contender in contenders if contender.cost_usd is not None]
    return round(sum(known), 10) if known else None
