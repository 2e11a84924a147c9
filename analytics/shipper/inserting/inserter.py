from __future__ import annotations

import logging
import secrets
import threading
import time
from contextlib import suppress

from django.conf import settings

from analytics.errors import AnalyticsQueryError
from analytics.shipper.columns import joined
from analytics.shipper.figures import STORE_ERRORS, LateFigures
from analytics.shipper.index_memory import LARGEST_COST
from analytics.shipper.inserting import exchange
from analytics.shipper.inserting.exchange import Group, Said
from analytics.shipper.inserting.handing_over import decoded
from analytics.shipper.shared_texts import StoreInserts
from core.redis.failures import REDIS_ERRORS, reason

logger = logging.getLogger("analytics.inserters")

# With an insert, and the same again for a record that comes right after its host has offered others, it is below the
# five seconds in which a session is to be listed.
_GATHER_SECONDS = 1.5
_GROUP_BYTES = 8 << 20
_LOOK_SECONDS = 0.25
_RETRY_SECONDS = 1.0


class _LostError(Exception):
    """The group is not known any more, or one of its hosts is gone."""


class Inserter:
    """Inserts batches of other hosts until `stop` is set. Any number may run; each group is inserted under its own
    token, so that it counts once whoever inserts it and however often."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.name = secrets.token_hex(8)
        self._group: Group | None = None
        self._insert = StoreInserts(before_rows=self._require)
        self._figures = LateFigures()
        self._failed = ""

    def run(self) -> None:
        while not self.stop.is_set():
            self.stop.wait(self.insert_group())
            self._figures.advance()
        with suppress(*REDIS_ERRORS):
            exchange.leave(self.name)
        self._figures.settle()

    def insert_group(self) -> float:
        """Returns the seconds to wait before the next group."""
        began = time.monotonic()
        room = min(_GROUP_BYTES, settings.CLICKHOUSE_QUERY_BYTES // LARGEST_COST)
        try:
            self._group = exchange.take(self.name, secrets.token_hex(16), room=room)
            if self._group is None:
                return _LOOK_SECONDS
            self._store(self._group)
        except _LostError:
            logger.warning("inserters.group_lost batches=%d", len(self._group.members) if self._group else 0)
            return 0.0
        except (*REDIS_ERRORS, *STORE_ERRORS) as error:
            self._note(reason(error))
            return _RETRY_SECONDS
        self._note("")
        is_full = sum(map(len, self._group.rows)) >= room
        return 0.0 if is_full else max(_GATHER_SECONDS - (time.monotonic() - began), 0.0)

    def _store(self, group: Group) -> None:
        columns = joined([decoded(rows) for rows in group.rows])
        try:
            self._insert(columns, group.token)
        except AnalyticsQueryError as error:
            if not error.blames_rows:
                raise
            # Each host inserts its own rows, and finds those that are at fault.
            logger.warning("inserters.group_refused batches=%d", len(group.members))
            exchange.settle(group, Said.APART)
        else:
            exchange.settle(group, Said.STORED)
            self._figures.stored(len(columns["request_id"]))

    def _require(self) -> None:
        if self._group is None or not exchange.may_insert(self._group):
            raise _LostError

    def _note(self, failure: str) -> None:
        if failure and not self._failed:
            logger.warning("inserters.failed reason=%s", failure)
        elif self._failed and not failure:
            logger.warning("inserters.recovered")
        self._failed = failure
