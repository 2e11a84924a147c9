"""Records each line of a batch's results as it passes to the client, and prices all lines together after the last."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError

from analytics.spool.held import HeldRecords
from core.processes.database_threads import in_database_thread
from gateway.batches.objects import price
from gateway.batches.records import LineRecords
from gateway.limits.claims import Claim
from gateway.limits.minute_limits import NO_CALLER, Caller
from gateway.limits.units import to_units
from gateway.models import StoredObject
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from integrations.providers.common.batch_results import BatchResult
from integrations.providers.given import Given

logger = logging.getLogger("gateway.batches")


class Passing(Protocol):
    async def feed(self, data: bytes) -> None: ...

    async def complete(self) -> None:
        """Called when all data has arrived, before the last piece is sent."""

    async def drop(self) -> None:
        """Called at the end, also if the body broke off. Safe after `complete`."""


class Nothing:
    async def feed(self, data: bytes) -> None:
        pass

    async def complete(self) -> None:
        pass

    async def drop(self) -> None:
        pass


class Pricing:
    """Records and prices the results of `row`, in threads, a piece at a time.

    If a disk or database fails, the results stay unpriced until the next fetch; the client does not notice.
    """

    def __init__(
        self, runtime: Runtime, snapshot: ProjectSnapshot, row: StoredObject, records: LineRecords, read: _Read
    ) -> None:
        self._runtime, self._snapshot, self._row = runtime, snapshot, row
        self._records, self._read = records, read
        self._held: HeldRecords | None = None
        # A thread may still write when a client's departure ends the call.
        self._lock = threading.Lock()
        self._rest: list[bytes] = []
        self._rest_bytes = self._lines = self._unread = 0
        self._cost: Decimal | None = None
        self._given: list[Given] = []
        self._failed = False

    async def feed(self, data: bytes) -> None:
        if not self._failed:
            await asyncio.to_thread(self._take, data)
            self._note_given()

    def _note_given(self) -> None:
        given, self._given = self._given, []
        credentials = self._records.place.credentials
        if given and not credentials.own_account:
            self._runtime.kept_ids.note(self._snapshot.id_text, credentials.integration_id, given)

    async def complete(self) -> None:
        # A client that leaves now must not part the decision from what follows it.
        await asyncio.shield(self._runtime.loop.create_task(self._settle()))

    async def drop(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            await asyncio.to_thread(self._discard, held)

    def _discard(self, held: HeldRecords) -> None:
        with self._lock:
            self._failed = True
            held.discard()

    def _take(self, data: bytes) -> None:
        with self._lock:
            if not self._failed:
                self._record_lines(data)

    def _record_lines(self, data: bytes) -> None:
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return
        lines = b"".join((*self._rest, data[:end])).split(b"\n")
        self._rest, self._rest_bytes = [], 0
        self._keep(data[end + 1 :])
        try:
            for line in lines:
                self._record(line)
        except OSError as error:
            self._give_up(error.strerror or type(error).__name__)

    def _keep(self, data: bytes) -> None:
        self._rest.append(data)
        self._rest_bytes += len(data)
        if self._rest_bytes > settings.UPSTREAM_RESPONSE_BYTES:
            self._give_up("a line is larger than UPSTREAM_RESPONSE_BYTES")

    def _record(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            result = self._read(line)
        except ValueError:
            self._unread += 1
            return
        self._given += result.given
        entry, cost = self._records.entry(result)
        if self._held is None:
            self._held = HeldRecords(settings.SPOOL_DIR)
        self._held.append(entry)
        self._lines += 1
        if cost is not None:
            self._cost = cost.total if self._cost is None else self._cost + cost.total

    async def _settle(self) -> None:
        if not self._failed:
            await asyncio.to_thread(self._take, b"\n")
            self._note_given()
        held, self._held = self._held, None
        if held is None:
            return
        if self._failed:
            await asyncio.to_thread(self._discard, held)
            return
        try:
            is_first = await in_database_thread(self._decide, held)
        except (DatabaseError, OSError) as error:
            self._give_up(type(error).__name__)
            return
        if is_first:
            self._note_priced()

    def _decide(self, held: HeldRecords) -> bool:
        """Prices the results, unless another fetch has. `settle_held` recovers from a crash after this."""
        if not price(self._row, held.name, self._cost):
            held.discard()
            return False
        held.publish()
        return True

    def _note_priced(self) -> None:
        row = self._row
        if self._unread:
            logger.warning("batch.lines_unread object=%s lines=%d", row.pk, self._unread)
        logger.info("batch.priced object=%s lines=%d", row.pk, self._lines)
        if self._cost:
            claim = Claim(
                f"batch-{row.pk}", self._snapshot.id_text, row.session_id, self._records.ts, 0, 0, self._caller()
            )
            self._runtime.limiter.charge(self._snapshot.limits, claim, to_units(self._cost))

    def _caller(self) -> Caller:
        snapshot, row = self._snapshot, self._row
        key = next((key for key in snapshot.keys.values() if key.id == row.api_key_id), None)
        limits = None if key is None else key.limits
        user = row.user_id if snapshot.limits_users else ""
        of_user = snapshot.user_limits.get(user, snapshot.every_user) if user else None
        of_team = snapshot.team_limits.get(row.team_id)
        if limits is None and of_user is None and of_team is None:
            return NO_CALLER
        return Caller(
            row.api_key_id if limits else 0,
            limits,
            user if of_user else "",
            of_user,
            row.team_id if of_team else 0,
            of_team,
        )

    def _give_up(self, reason: str) -> None:
        self._failed, self._rest = True, []
        logger.error("batch.not_priced object=%s reason=%s", self._row.pk, reason)


_Read = Callable[[bytes], BatchResult]
