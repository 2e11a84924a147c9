"""Adapts the batch size to the store: a large insert costs less per record, but must end within a query's limits."""

from __future__ import annotations

from django.conf import settings

from analytics.shipper.index_memory import USUAL_COST

# Both bound memory: a batch of either size takes the shipper some 160 MB. An insert has a price of its own, seven
# microseconds for each of 20,000 records, so that a backlog of small records goes in larger ones.
MAX_ROWS = 50_000
MAX_BYTES = 64 * 1024 * 1024
_FIRST_SHARE = 0.25
_MIN_SHARE = 1 / 32
# A batch is fixed once it was tried, so that one which takes longer than a query may could never be stored. The margin
# is for a store that becomes slower afterwards.
_FAST, _SLOW = 0.1, 0.25


class BatchSize:
    """The maximum rows and bytes of the next batch.

    It starts small. A full batch stored in under a tenth of CLICKHOUSE_QUERY_SECONDS doubles it; one that takes more
    than a quarter halves it.
    """

    def __init__(self) -> None:
        self._share = _FIRST_SHARE

    @property
    def max_rows(self) -> int:
        return max(int(MAX_ROWS * self._share), 1)

    @property
    def max_bytes(self) -> int:
        affordable = settings.CLICKHOUSE_QUERY_BYTES // USUAL_COST
        return max(int(min(MAX_BYTES * self._share, affordable)), 1)

    def adapt(self, *, rows: int, size: int, seconds: float) -> None:
        limit = settings.CLICKHOUSE_QUERY_SECONDS
        if seconds > limit * _SLOW:
            self._share = max(self._share / 2, _MIN_SHARE)
        elif seconds < limit * _FAST and (2 * rows > self.max_rows or 2 * size > self.max_bytes):
            self._share = min(self._share * 2, 1.0)
