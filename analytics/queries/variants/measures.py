"""The measures of a rollout's requests by user: each measure is a metric of the evaluation.

With sticky allocation a user's requests resemble each other. So the evaluation gets, besides the counts of requests,
users counted once (`users`) and sums over users (`by_user`), for each of these measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analytics.queries.variants.outcomes import ANSWERED, COST, COUNTS, JUDGED, PRICED, REQUEST, bin_of


@dataclass(frozen=True)
class Measure:
    """SQL about a row `r`: `value`, of the requests for which `has_value` is true. A value with a `limit`, the name of
    a parameter, is a quantity, which sums cut there; without one it is an event, 1 or 0."""

    name: str
    has_value: str
    value: str
    limit: str | None = None

    @property
    def number(self) -> str:
        return f"toFloat64({self.value})"

    @property
    def cut(self) -> str:
        return f"least({self.number}, {{{self.limit}:Float64}})" if self.limit else self.number


MEASURES = (
    Measure("unanswered", REQUEST, COUNTS["unanswered"]),
    Measure("errors", JUDGED, COUNTS["errors"]),
    Measure("slow", ANSWERED, f"({bin_of('r.latency_ms')} > {{slow_bin:UInt32}})"),
    *(Measure(name, ANSWERED, COUNTS[name]) for name in ("contract", "truncated", "fallback", "empty")),
    Measure("latency", ANSWERED, "r.latency_ms", limit="latency_cap"),
    Measure("cost", PRICED, COST, limit="cost_cap"),
)
"""All measures. They take the parameters of `bin_of` and `UNANSWERED`, the limits, and `slow_bin`, the bin above which
a request is slow."""

EASED = Measure("eased", ANSWERED, f"({bin_of('r.latency_ms')} > {{eased_bin:UInt32}})")
"""Which requests are slow above `eased_bin`: for cohorts only."""


def array(of: Callable[[Measure], str], measures: Sequence[Measure] = MEASURES) -> str:
    return f"[{', '.join(map(of, measures))}]"


NAMES = array(lambda one: f"'{one.name}'")
QUANTITIES = f"({', '.join(repr(one.name) for one in MEASURES if one.limit)})"
"""The names of the quantities, for IN."""
