"""Inserts rows into the tables of telemetry, several posts at once.

Every insert is a part that the store has to merge, and applications send many small posts. So posts that arrive while
an insert runs, or within OTLP_WINDOW_SECONDS of the last one, share the next insert; each is answered once its rows are
stored. A post after a quiet time is inserted at once.

A retried post lands in another insert, so insert tokens cannot deduplicate it. Its rows have the same RecordId and
time: the tables keep one of them, and queries return one.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from analytics.clickhouse import client
from analytics.errors import AnalyticsQueryError, AnalyticsUnavailableError
from analytics.telemetry.errors import TelemetryBusyError
from core.errors import ApplicationError

logger = logging.getLogger("analytics.telemetry")

Rows = Sequence[tuple[Any, ...]]
Insert = Callable[[str, Sequence[str], Rows, str], None]

OWN_COLUMNS = ("ProjectId", "DropDate")

# These bounds limit the posts that wait in memory for a slow store; a single post may always wait. Each holds a thread.
MAX_WAITING_BYTES = 64 * 1024 * 1024
MAX_WAITING_POSTS = 200
RETRY_SECONDS = 5
_MAX_ROWS = 20_000


@dataclass
class _Post:
    rows: Rows
    token: str
    size: int
    done: bool = False
    # The post waits on this event until its rows are stored.
    error: Exception | None = field(default_factory=lambda: TelemetryBusyError("The telemetry could not be stored."))


def insert(table: str, columns: Sequence[str], rows: Rows, token: str) -> None:
    client.insert(table, columns, rows, token=token)


def drop_date(day: date) -> date:
    return day + timedelta(days=settings.TELEMETRY_RETENTION_DAYS)


class Gatherer:
    """Collects the posts for one table. One of the waiting threads inserts for all."""

    def __init__(self, table: str, columns: Sequence[str], *, insert: Insert = insert) -> None:
        self._table = table
        self._columns = (*OWN_COLUMNS, *columns)
        self._insert = insert
        self._changed = threading.Condition()
        self._waiting: list[_Post] = []
        self._waiting_bytes = 0
        self._inserting = False
        self._last_insert = 0.0

    def store(self, project_id: UUID, rows: Rows, *, body: bytes, size: int) -> None:
        """Returns once the rows (of `size` bytes) are stored. Raises AnalyticsUnavailableError, TelemetryBusyError."""
        if not rows:
            return
        # Rows expire by the day on which they arrive, so that old ones are kept as long, and an insert touches one
        # partition.
        kept_until = drop_date(datetime.now(UTC).date())
        token = hashlib.sha256(project_id.bytes + body).hexdigest()
        post = _Post([(project_id, kept_until, *row) for row in rows], token, size)
        self._wait_or_lead(post)
        if post.error is not None:
            raise post.error

    def _wait_or_lead(self, post: _Post) -> None:
        with self._changed:
            too_much = self._waiting_bytes + post.size > MAX_WAITING_BYTES or len(self._waiting) >= MAX_WAITING_POSTS
            if self._waiting and too_much:
                raise TelemetryBusyError("The analytics store is behind with telemetry.")
            self._waiting.append(post)
            self._waiting_bytes += post.size
            while self._inserting and not post.done:
                self._changed.wait()
            if post.done:
                return
            self._inserting = True
        try:
            while not post.done:
                self._insert_next()
        finally:
            with self._changed:
                self._inserting = False
                self._changed.notify_all()

    def _insert_next(self) -> None:
        with self._changed:
            due = self._last_insert + settings.OTLP_WINDOW_SECONDS
            while (left := due - time.monotonic()) > 0 and sum(len(post.rows) for post in self._waiting) < _MAX_ROWS:
                self._changed.wait(left)
            self._last_insert = time.monotonic()
            posts, self._waiting = self._waiting, []
            self._waiting_bytes = 0
        try:
            self._insert_together(posts)
        finally:
            with self._changed:
                for post in posts:
                    post.done = True
                self._changed.notify_all()

    def _insert_together(self, posts: list[_Post]) -> None:
        error = self._tried(posts)
        is_unavailable = isinstance(error, AnalyticsUnavailableError)
        if isinstance(error, AnalyticsQueryError) and not is_unavailable and len(posts) > 1:
            # One of the posts caused the error, so each is inserted on its own.
            for post in posts:
                post.error = self._tried([post])
            return
        for post in posts:
            post.error = error

    def _tried(self, posts: list[_Post]) -> Exception | None:
        token = hashlib.sha256("".join(post.token for post in posts).encode()).hexdigest()
        try:
            self._insert(self._table, self._columns, [row for post in posts for row in post.rows], token)
        except ApplicationError as error:
            logger.warning("records.not_stored table=%s posts=%d error=%s", self._table, len(posts), error.code)
            return error
        return None
