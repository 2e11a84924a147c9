"""Looks at the request log for what is wrong now: one at a time for a project, however many readers ask."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.parameters.ranges import TimeRange
from analytics.presenters import metrics
from analytics.wire.metrics import Totals

HOUR = timedelta(hours=1)
MISSED = (AnalyticsUnavailableError, AnalyticsLimitError)
"""The errors of a look that the log did not answer."""


class LogLooks:
    """The looks of this process, safe for threads. They go on when a reader stops waiting for them."""

    def __init__(self) -> None:
        # A store that hangs holds its threads until its client gives up; other projects wait for one meanwhile.
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="problems")
        self._lock = threading.Lock()
        self._under_way: dict[UUID, Future[Totals]] = {}
        self._missed: Counter[UUID] = Counter()

    def look(self, project_id: UUID, now: datetime) -> Future[Totals]:
        """Returns the totals of the last hour: those of the look that is under way, else of a new one. It fails with
        one of MISSED."""
        with self._lock:
            running = self._under_way.get(project_id)
            if running is None or running.done():
                running = self._threads.submit(self._look, project_id, TimeRange(now - HOUR, now))
                self._under_way[project_id] = running
            return running

    def missed(self, project_id: UUID) -> int:
        """Returns how many looks in a row ended without an answer."""
        return self._missed[project_id]

    def _look(self, project_id: UUID, hour: TimeRange) -> Totals:
        try:
            totals = metrics.totals(project_id, hour)
        except MISSED:
            self._missed[project_id] += 1
            raise
        self._missed.pop(project_id, None)
        return totals
