from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.parameters.ranges import TimeRange
from analytics.queries.groups import get_sums
from analytics.queries.summed import Sums

HOUR = timedelta(hours=1)
_KNOWN_FOR = timedelta(minutes=2)
MISSED = (AnalyticsUnavailableError, AnalyticsLimitError)
"""The errors of a look that the log did not answer."""


class LogLooks:
    """The looks of this process at the request log; safe for threads.

    A project has one look at a time, however many readers ask. A look goes on when a reader stops waiting for it, and
    what it found is known for a while.
    """

    def __init__(self) -> None:
        # A store that hangs holds its threads until its client gives up; other projects wait for one meanwhile.
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="problems")
        self._lock = threading.Lock()
        self._under_way: dict[UUID, Future[Sums]] = {}
        self._missed: Counter[UUID] = Counter()
        self._found: dict[UUID, tuple[datetime, Sums]] = {}

    def look(self, project_id: UUID, now: datetime) -> Future[Sums]:
        """Joins the look that is under way, or starts one; returns the last hour's totals. Fails with one of MISSED."""
        with self._lock:
            running = self._under_way.get(project_id)
            if running is None or running.done():
                running = self._threads.submit(self._look, project_id, TimeRange(now - HOUR, now))
                self._under_way[project_id] = running
            return running

    def known(self, project_id: UUID, now: datetime) -> Sums | None:
        """Returns the totals of the latest look that was answered, if it was made within two minutes."""
        at, found = self._found.get(project_id, (now - HOUR, None))
        return found if now - at < _KNOWN_FOR else None

    def missed(self, project_id: UUID) -> int:
        return self._missed[project_id]

    def _look(self, project_id: UUID, hour: TimeRange) -> Sums:
        try:
            totals = get_sums(hour.of(project_id))
        except MISSED:
            self._missed[project_id] += 1
            raise
        self._missed.pop(project_id, None)
        self._found[project_id] = hour.end, totals
        return totals
