from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

MAX_PER_MINUTE = 2_000_000_000
MAX_BUDGET_USD = 100_000_000
MAX_CONCURRENT_REQUESTS = 100_000
MONEY_COLUMN_DIGITS, MONEY_COLUMN_PLACES = 20, 10


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """A caller's limits (docs/limits.md); None is unlimited.

    `set_at_us` is the time of the last change in microseconds: spend before it may not have been counted.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None
    monthly_budget_usd: Decimal | None = None
    total_budget_usd: Decimal | None = None
    set_at_us: int = field(default=0, compare=False)

    @property
    def is_set(self) -> bool:
        rates = (self.requests_per_minute, self.tokens_per_minute, self.concurrent_requests)
        return any(limit is not None for limit in (*rates, self.monthly_budget_usd, self.total_budget_usd))
