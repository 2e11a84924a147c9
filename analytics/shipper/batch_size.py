"""Adapts the size of a batch to the store: a large insert costs less for each record, and must end within the limits of
a query."""

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
    """The maximum of rows and bytes of the next batch. A small one comes first; full ones that the store takes in a
    tenth of CLICKHOUSE_QUERY_SECONDS are doubled, and those that take it longer than a quarter are halved."""

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
        """Takes notice of a stored batch: its rows, its bytes in the spool, and the seconds until it was stored."""
        limit = settings.CLICKHOUSE_QUERY_SECONDS
        if seconds > limit * _SLOW:
            self._share = max(self._share / 2, _MIN_SHARE)
        elif seconds < limit * _FAST and (2 * rows > self.max_rows or 2 * size > self.max_bytes):
            self._share = min(self._share * 2, 1.0)
