from __future__ import annotations

import logging
import time
from collections.abc import Callable

from analytics.clickhouse import late_figures
from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError

logger = logging.getLogger("analytics.shipper")

STORE_ERRORS = (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError)

_EVERY_SECONDS = 20.0
_LOOKS = 2


class LateFigures:
    """Makes the figures of rows that this process has stored, in time and many at once. A store that is away is asked
    again later."""

    def __init__(self) -> None:
        # A process that died may have left rows without figures. Rows are seen by the second look at the latest.
        self._rows, self._looks, self._made_at = 0, _LOOKS, time.monotonic()

    def stored(self, rows: int) -> None:
        self._rows, self._looks = self._rows + rows, _LOOKS

    def advance(self) -> None:
        waited = time.monotonic() - self._made_at
        if self._rows >= late_figures.ROWS_AT_ONCE or waited > _EVERY_SECONDS:
            self._make(late_figures.advance)

    def settle(self) -> None:
        self._make(late_figures.settle)

    def _make(self, make: Callable[[], object]) -> None:
        self._made_at = time.monotonic()
        if not self._looks:
            return
        try:
            make()
        except STORE_ERRORS as error:
            logger.warning("figures.postponed reason=%s", type(error).__name__)
        else:
            self._rows, self._looks = 0, self._looks - 1
