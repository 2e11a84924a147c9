from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from analytics.bills.formats import Charge
from analytics.queries.day_costs import DayCost

# An export names the version of the model that served, or a display name; a request mostly names an alias of it.
_VERSION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Difference:
    """One day's costs of a model in US dollars. `unpriced` counts its requests of unknown cost."""

    day: date
    model: str
    charged: Decimal
    recorded: Decimal
    requests: int
    unpriced: int

    @property
    def excess(self) -> Decimal:
        return self.charged - self.recorded


def compare(charges: Iterable[Charge], costs: Iterable[DayCost], *, tolerance: Decimal) -> list[Difference]:
    charged: dict[tuple[date, str], Decimal] = defaultdict(Decimal)
    for charge in charges:
        charged[charge.day, family(charge.model)] += charge.cost
    recorded: dict[tuple[date, str], list[DayCost]] = defaultdict(list)
    for cost in costs:
        recorded[cost.day, family(cost.model)].append(cost)
    found = (
        Difference(
            day=day,
            model=model,
            charged=charged.get((day, model), _ZERO),
            recorded=sum((cost.cost_usd for cost in recorded.get((day, model), ())), _ZERO),
            requests=sum(cost.requests for cost in recorded.get((day, model), ())),
            unpriced=sum(cost.unpriced for cost in recorded.get((day, model), ())),
        )
        for day, model in sorted({*charged, *recorded})
    )
    return [one for one in found if abs(one.excess) > tolerance]


def family(model: str) -> str:
    """Returns the name without its version: `gpt-4o-2024-08-06` and `GPT-4o` give the same, as do `Claude Opus 4.5` and
    `claude-opus-4-5-20251101`."""
    lower = model.strip().lower()
    if lower.startswith("claude"):
        lower = lower.replace(" ", "-").replace(".", "-")
    return _VERSION.sub("", lower)
