"""The use of a team's or an end user's limits, as tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.ui.formats import money, number
from core.ui.tiles import Tile

_RATES = {
    "requests": "Requests this minute",
    "tokens": "Tokens this minute",
    "concurrent_requests": "Requests under way",
}


def use_tiles(found: Mapping[str, Any]) -> Sequence[Tile]:
    """`found` is the use of a caller, as `GET usage` shows it."""
    month, total = found["month"], found.get("total")
    is_over = any(spend and spend["remaining_usd"] == 0 for spend in (month, total))
    return [
        Tile("Spent this month", money(month["spent_usd"]), _of_budget(month), kind="bad" if is_over else "neutral"),
        *([Tile("Spent in all", money(total["spent_usd"]), _of_budget(total))] if total else []),
        *(
            Tile(label, number(found[name]["used"]), f"of {number(found[name]['limit'])}")
            for name, label in _RATES.items()
            if found[name]["limit"] is not None
        ),
    ]


def _of_budget(spend: Mapping[str, Any]) -> str:
    if spend["budget_usd"] is None:
        return "no budget"
    return f"of {money(spend['budget_usd'])}, {money(spend['remaining_usd'])} left"
