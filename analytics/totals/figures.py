from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

import msgspec

# These are the upper bounds of buckets in milliseconds; the last bucket has none.
DURATION_MS = (50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000)
OVERHEAD_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500)


class UsageFigures(msgspec.Struct):
    """The sums of one project, provider and model. `cost_units` are 10⁻¹⁰ US dollars, the log's own precision;
    `unpriced` counts successes of unknown cost. `used_at` is Unix time in seconds."""

    project: str
    provider: str
    model: str
    outcomes: dict[str, int] = {}
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_units: int = 0
    unpriced: int = 0
    used_at: int = 0


class KeyFigures(msgspec.Struct):
    """`api_key` is its id, 0 for requests without a key."""

    project: str
    api_key: str
    requests: int = 0
    cost_units: int = 0
    used_at: int = 0


class Distribution(msgspec.Struct):
    """A histogram: `counts` has one bucket more than there are bounds; `sum_ms` is the sum of all values."""

    counts: list[int]
    sum_ms: int = 0

    @classmethod
    def over(cls, bounds: tuple[int, ...]) -> Distribution:
        return cls([0] * (len(bounds) + 1))

    def note(self, bounds: tuple[int, ...], values_ms: Iterable[int]) -> None:
        for value, number in Counter(values_ms).items():
            self.counts[bisect_left(bounds, value)] += number
            self.sum_ms += value * number


class Totals(msgspec.Struct):
    """The totals of one spool since `since` (Unix time in seconds).

    `token` is the latest counted batch's. The keys: `errors` by provider and error code, `attempts` by provider and
    result of the call, `cache` by cache status, `durations` by whether the request was a stream, `first_outputs` by
    provider.
    """

    since: int
    token: str = ""
    usage: list[UsageFigures] = []
    keys: list[KeyFigures] = []
    errors: dict[str, dict[str, int]] = {}
    attempts: dict[str, dict[str, int]] = {}
    cache: dict[str, int] = {}
    durations: dict[str, Distribution] = {}
    first_outputs: dict[str, Distribution] = {}
    overhead: Distribution = msgspec.field(default_factory=lambda: Distribution.over(OVERHEAD_MS))
    batches: int = 0
    records: int = 0
