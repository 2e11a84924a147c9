"""The lease that lets one process at a time migrate an analytics store, even if SQL database and Redis differ.

The lease lives in the store that it guards. ClickHouse has no conditional update, but of two `CREATE TABLE` with one
name exactly one succeeds. So a lease is a table without rows, `migration_lease_<number>`, whose comment names its
holder and serves as its heartbeat. Numbers only grow, so a former holder that still changes its own table disturbs no
other.

- The holder changes its comment every few seconds, from a thread, because a statement may take hours.
- A waiting process watches the comment for changes, by its own monotonic clock. No two clocks are compared.
- A lease of this process that none of its threads holds is free: the store did not hear of its end.
- A comment that stays the same for `MIGRATION_LEASE_SECONDS` belongs to a dead holder, and the next number is taken.
- A holder that was only suspended finds a higher number before its next statement, and waits again. It looks before
  each statement, but only once within a fortieth of that time: a new store gets 50 tables and views at once.
- The next holder begins once no server runs a statement of a dead holder.

With several servers, exactly one of two `CREATE TABLE` still succeeds: a Replicated database and ON CLUSTER order all
definitions in Keeper, and each server runs them in that order.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from analytics.clickhouse import client
from analytics.clickhouse.topology import everywhere
from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError
from core.processes.background_tasks import keep_thread_running
from core.processes.locks import this_process

logger = logging.getLogger("analytics.migrations")

_TABLE = "migration_lease_"
_ENDED = "ended"
_LOOK_EVERY_SECONDS = 0.2
_BEATS_A_LEASE, _LOOKS_A_LEASE = 8, 40
_TABLE_EXISTS = 57
_ACCESS_DENIED = 497
_FAILURES = (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError)

# The mark stands in front of every statement of a migration, so that those still running are found.
MARK = "/* schema migration */ "
_LEASES = """
SELECT name, comment FROM {tables} WHERE database = currentDatabase() AND startsWith(name, {{table:String}})
"""
_RUNNING = "SELECT query_id FROM {processes} WHERE {is_running}"


# The numbers of the leases that threads of this process hold.
_held: set[int] = set()


class LeaseLostError(Exception):
    """Another process took the lease because this one sent no heartbeat for too long."""


@dataclass(frozen=True)
class SeenLease:
    number: int
    comment: str

    @property
    def is_free(self) -> bool:
        return self.comment.startswith(_ENDED)


class Lease:
    def __init__(self, number: int, holder: str) -> None:
        self.number = number
        self._holder = holder
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None
        self._seen = float("-inf")

    def check(self) -> None:
        """Raises LeaseLostError."""
        now = time.monotonic()
        newest = newest_lease()
        if newest is None or newest.number != self.number:
            raise LeaseLostError
        self._seen = now

    def check_now_and_then(self) -> None:
        """Raises LeaseLostError."""
        if time.monotonic() - self._seen > settings.MIGRATION_LEASE_SECONDS / _LOOKS_A_LEASE:
            self.check()

    def begin(self) -> None:
        # The thread speaks to the address of this context, which may be that of a proof.
        self._keeper = keep_thread_running("analytics.migration_lease", partial(copy_context().run, self._keep))

    def end(self) -> None:
        self._ended.set()
        if self._keeper is not None:
            self._keeper.join()
        try:
            self._set_comment(f"{_ENDED} {self._holder}")
        except _FAILURES as error:
            # The next migrator, unless it is in this process, takes the lease for that of a dead one and waits longer.
            logger.warning("lease.not_ended number=%d reason=%s", self.number, type(error).__name__)
        finally:
            _held.discard(self.number)

    def _keep(self) -> None:
        beat = 1
        while not self._ended.wait(settings.MIGRATION_LEASE_SECONDS / _BEATS_A_LEASE):
            beat += 1
            try:
                self._set_comment(f"{self._holder} beat {beat}")
            except _FAILURES as error:
                logger.warning("lease.not_renewed number=%d reason=%s", self.number, type(error).__name__)

    def _set_comment(self, comment: str) -> None:
        client.execute(f"ALTER TABLE {_TABLE}{self.number} MODIFY COMMENT '{comment}'")


@contextmanager
def migration_lease() -> Iterator[Lease]:
    """Waits until the lease is free, and logs once which process holds it.

    Raises AnalyticsUnavailableError when the store does not answer.
    """
    # The holder's name stands in a DDL statement, which takes no parameters.
    holder = re.sub(r"[^\w. -]", "_", this_process())
    lease = Lease(_take(holder), holder)
    lease.begin()
    try:
        wait_until_none_runs(MARK.strip())
        _drop_former(lease.number)
        yield lease
    finally:
        lease.end()


def wait_for_migrators() -> None:
    seen: SeenLease | None = None
    since = time.monotonic()
    while (newest := newest_lease()) is not None and not newest.is_free:
        if newest != seen:
            _log_waiting(seen, newest)
            seen, since = newest, time.monotonic()
        elif time.monotonic() - since > settings.MIGRATION_LEASE_SECONDS:
            return
        time.sleep(_LOOK_EVERY_SECONDS)


def wait_until_none_runs(text: str) -> None:
    is_logged = False
    while count_running(text):
        if not is_logged:
            logger.info("statements.waiting text=%r", text)
            is_logged = True
        time.sleep(_LOOK_EVERY_SECONDS)


def wait_for_running(text: str) -> None:
    """Waits for the statements that run now, and not for those that begin meanwhile."""
    waited_for = _running(text)
    while waited_for := waited_for & _running(text):
        time.sleep(_LOOK_EVERY_SECONDS)


def count_running(text: str) -> int:
    return len(_running(text))


def _running(text: str) -> set[str]:
    try:
        sql = _RUNNING.format(processes=everywhere.system("processes"), is_running=everywhere.is_running())
        return {query_id for (query_id,) in client.execute(sql, everywhere.texts(text))}
    except AnalyticsQueryError as error:
        if error.server_code != _ACCESS_DENIED:
            raise
        logger.warning("statements.unseen reason='this user may not read system.processes'")
        return set()


def _take(holder: str) -> int:
    seen: SeenLease | None = None
    since = time.monotonic()
    while True:
        newest = newest_lease()
        if newest != seen:
            _log_waiting(seen, newest)
            seen, since = newest, time.monotonic()
        dead = time.monotonic() - since > settings.MIGRATION_LEASE_SECONDS
        if newest is None or newest.is_free or dead or _is_left_by(holder, newest):
            number = 1 if newest is None else newest.number + 1
            if create_lease(number, holder):
                _held.add(number)
                if newest is not None and not newest.is_free:
                    logger.warning("lease.taken_over number=%d from=%r", number, newest.comment)
                return number
        time.sleep(_LOOK_EVERY_SECONDS)


def _is_left_by(holder: str, newest: SeenLease) -> bool:
    return newest.comment.partition(" beat ")[0] == holder and newest.number not in _held


def _log_waiting(seen: SeenLease | None, newest: SeenLease | None) -> None:
    if newest is None or newest.is_free or (seen is not None and seen.number == newest.number):
        return
    logger.info("lease.waiting number=%d holder=%r", newest.number, newest.comment.partition(" beat ")[0])


def create_lease(number: int, holder: str) -> bool:
    try:
        client.execute(f"CREATE TABLE {_TABLE}{number} (none UInt8) ENGINE = Null COMMENT '{holder} beat 1'")
    except AnalyticsQueryError as error:
        if error.server_code != _TABLE_EXISTS:
            raise
        return False
    return True


def newest_lease() -> SeenLease | None:
    return max(_all(), key=lambda one: one.number, default=None)


def _all() -> list[SeenLease]:
    """A lease whose comment has not reached every server yet is listed with each of its comments."""
    rows: list[tuple[Any, ...]] = client.execute(_LEASES.format(tables=everywhere.system("tables")), {"table": _TABLE})
    return [
        SeenLease(int(number), comment) for name, comment in rows if (number := name.removeprefix(_TABLE)).isdigit()
    ]


def _drop_former(number: int) -> None:
    for found in _all():
        if found.number < number:
            client.execute(f"DROP TABLE IF EXISTS {_TABLE}{found.number} SYNC")
