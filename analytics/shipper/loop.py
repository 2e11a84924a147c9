"""Ships the records of the spool to the store.

The steps: record the requests of dead workers, plan a batch, insert it until it is stored, hand over what is exported,
save the offset, remove shipped segments. Some figures come later than the rows (`analytics.clickhouse.late_figures`).

Three rules store each record exactly once. A batch is saved before its first try, so any retry sends the same rows. The
store deduplicates those rows by their token, in the base table and in every rollup. The end of the shipped bytes is
saved only after the store has the rows.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from django.conf import settings

from analytics.errors import AnalyticsQueryError
from analytics.request_log.columns import Columns, rows_of
from analytics.shipper import already_stored, batch
from analytics.shipper.batch_size import BatchSize
from analytics.shipper.dead_letters import DeadLetters
from analytics.shipper.figures import STORE_ERRORS, LateFigures
from analytics.shipper.inserting.exchange import Said
from analytics.shipper.inserting.handing_over import HandingOver
from analytics.shipper.shared_texts import StoreInserts
from analytics.spool import names
from analytics.spool.handover import Handover
from analytics.spool.interrupted import is_retained, record_interrupted
from analytics.spool.reader import is_finished
from analytics.spool.shipper_state import Plan, State, StateFile
from analytics.totals.file import TotalsFile

logger = logging.getLogger("analytics.shipper")

Insert = Callable[[Columns, str], None]

_FIRST_RETRY_SECONDS = 0.2
_LAST_RETRY_SECONDS = 60.0
# An engine that restarts is back within this time, so the shipper does not wait longer between two tries.
_QUICK_RETRY_SECONDS = 1.0
_QUICK_RETRIES_FOR_SECONDS = 30.0
_MIN_PAUSE_SECONDS = 0.3
# Between two whole looks into an empty spool, which also find workers that died: looks at the sizes of segments alone.
_LOOKS_FOR_RECORDS = 10
# A session is to be listed within five seconds of its request. A record that comes after a pause is shipped at once.
_MAX_PAUSE_SECONDS = 4.0
# Each insert has a fixed cost for the store: at most a hundredth of the time goes into inserts while there are few
# records.
_PAUSE_PER_INSERT_SECOND = 100
_LEFTOVER_SECONDS = 60.0
_HELD_UP_PAUSE_SECONDS = 1.0


class SpoolLockedError(Exception):
    pass


def insert_into_store(columns: Columns, token: str) -> None:
    StoreInserts()(columns, token)


class Shipper:
    """The one shipper of a spool's directory. Raises SpoolLockedError if another one runs.

    `insert` takes the place of the store, which makes no late figures then. With `handing_over`, inserters store small
    batches while there are any. `with_spans` marks the requests whose spans are derived when they are read. `stop` may
    be set from a signal handler: the current batch is finished if the store takes it at once, else it stays planned.
    """

    def __init__(
        self,
        directory: Path,
        *,
        insert: Insert | None = None,
        handing_over: HandingOver | None = None,
        with_spans: bool = True,
        lock_seconds: float = 0.0,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.stop = threading.Event()
        self.shipped = 0
        self._directory = directory
        self._insert = insert or StoreInserts()
        self._figures = LateFigures() if insert is None else None
        self._handing_over = handing_over
        self._with_spans = with_spans
        self._lock = _take_lock(directory / "shipper.lock", lock_seconds)
        self._file = StateFile(directory)
        self._state = self._file.load()
        self._dead = DeadLetters(directory)
        self._totals = TotalsFile(directory)
        self._size = BatchSize()
        self._was_handed_over = False
        self._handover = Handover(directory, max_bytes=settings.TRACE_EXPORT_BYTES)
        self._handover.recover({plan.token for plan in self._state.plans})

    def close(self) -> None:
        os.close(self._lock)

    def run(self) -> None:
        """Ships until `stop` is set.

        Retries a write that a full disk refuses; the last saved state stays valid.
        """
        held_up = False
        while not self.stop.is_set():
            started = time.monotonic()
            try:
                shipped = self.ship_batch()
            except OSError as error:
                if not held_up:
                    logger.error("shipper.held_up reason=%s", error.strerror or type(error).__name__)
                held_up = True
                self.stop.wait(_HELD_UP_PAUSE_SECONDS)
                continue
            if held_up:
                held_up = False
                logger.warning("shipper.recovered")
            self._make_figures()
            if not shipped:
                self._wait_for_records()
            elif not self._is_behind():
                spent = time.monotonic() - started
                # A record that came during the insert has waited since then. The inserters make a pause of their own.
                pause = min(spent * _PAUSE_PER_INSERT_SECOND, _MAX_PAUSE_SECONDS - spent)
                self.stop.wait(_MIN_PAUSE_SECONDS if self._was_handed_over else max(pause, _MIN_PAUSE_SECONDS))
        if not self._state.plans:
            self._make_figures(all_of_them=True)

    def _wait_for_records(self) -> None:
        """Returns when there are some, but soon enough for the requests of a worker that died."""
        for _ in range(_LOOKS_FOR_RECORDS):
            if self.stop.wait(_MIN_PAUSE_SECONDS) or self._has_records():
                return

    def _has_records(self) -> bool:
        offsets = self._state.offsets
        try:
            with os.scandir(self._directory) as entries:
                segments = (entry for entry in entries if entry.name.endswith(names.SEGMENT))
                return any(entry.stat().st_size > offsets.get(entry.name, 0) for entry in segments)
        except OSError:
            return True  # The whole look says what is wrong.

    def drain(self) -> int:
        before = self.shipped
        while not self.stop.is_set() and self.ship_batch():
            pass
        self._make_figures(all_of_them=True)
        return self.shipped - before

    def ship_batch(self) -> bool:
        """Begins with a batch that an earlier process left. Returns False if there was nothing to ship."""
        record_interrupted(self._directory)
        frames = None
        if not self._state.plans:
            planned = batch.next_plan(
                self._segments(),
                self._state.offsets,
                max_rows=self._size.max_rows,
                max_bytes=self._size.max_bytes,
                memory=settings.CLICKHOUSE_QUERY_BYTES,
            )
            if planned is None:
                self._delete_finished()
                return False
            frames = planned.frames
            self._save(State(self._state.offsets, (self._decided(planned.plan, frames),)))
        while self._state.plans and self._ship_first(frames):
            frames = None
        if self._state.plans:
            return False  # The shipper was stopped before the store took the batch.
        self._delete_finished()
        return True

    def _make_figures(self, *, all_of_them: bool = False) -> None:
        """Leaves them to the inserters while there are any: a look of each host costs as much as the rows do."""
        if self._figures is None or self._was_handed_over:
            return
        if all_of_them:
            self._figures.settle()
        else:
            self._figures.advance()

    def _ship_first(self, frames: list[batch.Located] | None) -> bool:
        """Ships the first plan or replaces it by its halves; False if stopped. Reads `frames` if None."""
        plan, is_new = self._state.plans[0], frames is not None
        if frames is None:
            frames = batch.read_frames(self._directory, plan, self._dead)
        columns = batch.columns_of(frames, self._dead, with_spans=self._with_spans)
        rows = rows_of(columns)
        began = time.monotonic()
        try:
            if rows and not self._store(plan, columns, is_new=is_new):
                return False
        except AnalyticsQueryError as error:
            if len(frames) > 1:
                # Of some rows it may not be known yet whether inserters have stored them.
                halves = batch.halve(frames, handed_over=self._state.plans[0].handed_over)
                self._save(State(self._state.offsets, (*halves, *self._state.plans[1:])))
                return True
            self._dead.keep_frame(frames[0].segment, frames[0].frame, f"{error}\n{error.reason}")
        else:
            self._size.adapt(rows=rows, size=plan.size, seconds=0 if plan.handed_over else time.monotonic() - began)
            self.shipped += rows
            if rows:  # Bytes that are damaged, or a record that fits no column, may be a batch alone.
                self._totals.count(columns, plan.token)
            self._handover.prepare((item.frame for item in frames), plan.token)
        self._commit(plan)
        self._handover.publish(plan.token)
        return True

    def _decided(self, plan: Plan, frames: Sequence[batch.Located] | None) -> Plan:
        if frames is None or self._handing_over is None:
            return plan
        takes = self._handing_over.takes(rows=len(frames), size=plan.size)
        return msgspec.structs.replace(plan, handed_over=takes)

    def _store(self, plan: Plan, columns: Columns, *, is_new: bool) -> bool:
        """Returns False if stopped. Raises AnalyticsQueryError if the rows are at fault."""
        self._was_handed_over = plan.handed_over
        left = self._left_by_inserters(plan, columns, is_new=is_new) if plan.handed_over else columns
        if not left:
            return left is not None
        self._was_handed_over = False
        rows = rows_of(left)
        if not self._until_stored(partial(self._insert, left, plan.token), rows):
            return False
        if self._figures is not None:
            self._figures.stored(rows)
        return True

    def _left_by_inserters(self, plan: Plan, columns: Columns, *, is_new: bool) -> Columns | None:
        """Returns the rows that are to be inserted here, None if stopped."""
        inserters = self._handing_over or HandingOver()
        said = inserters.outcome(columns, plan.token, self.stop, is_new=is_new)
        if said in (None, Said.STORED):
            return None if said is None else {}
        left = columns if said is Said.WITHDRAWN else self._not_stored(columns)
        if left and rows_of(left) == rows_of(columns):
            # From here on it is a batch like any other, which is inserted whole until it is stored.
            own = msgspec.structs.replace(plan, handed_over=False)
            self._save(State(self._state.offsets, (own, *self._state.plans[1:])))
        return left

    def _not_stored(self, columns: Columns) -> Columns | None:
        """Returns None if stopped."""
        found: list[Columns] = []
        is_known = self._until_stored(lambda: found.append(already_stored.left_over(columns)), rows_of(columns))
        return found[0] if is_known else None

    def _until_stored(self, insert: Callable[[], None], rows: int) -> bool:
        """Returns False if stopped. Raises AnalyticsQueryError if the rows are at fault."""
        began = time.monotonic()
        wait, failed = _FIRST_RETRY_SECONDS, False
        while True:
            try:
                insert()
            except STORE_ERRORS as error:
                if isinstance(error, AnalyticsQueryError) and error.blames_rows:
                    raise
                if not failed:
                    logger.warning("store.unavailable rows=%d reason=%s", rows, type(error).__name__)
                failed = True
            else:
                break
            if self.stop.wait(wait):
                return False
            quick = time.monotonic() - began < _QUICK_RETRIES_FOR_SECONDS
            wait = min(wait * 2, _QUICK_RETRY_SECONDS if quick else _LAST_RETRY_SECONDS)
        if failed:
            logger.warning("store.recovered rows=%d seconds=%.1f", rows, time.monotonic() - began)
        return True

    def _commit(self, plan: Plan) -> None:
        offsets = {name: end for name, end in self._state.offsets.items() if (self._directory / name).exists()}
        for part in plan.parts:
            offsets[part.segment] = max(part.end, offsets.get(part.segment, 0))
        self._save(State(offsets, self._state.plans[1:]))

    def _save(self, state: State) -> None:
        self._file.save(state)
        self._state = state

    def _segments(self) -> list[Path]:
        return names.list_files(self._directory, names.SEGMENT)

    def _is_shipped(self, path: Path) -> bool:
        return self._state.offsets.get(path.name, 0) >= path.stat().st_size

    def _is_behind(self) -> bool:
        pending = (path.stat().st_size - self._state.offsets.get(path.name, 0) for path in self._segments())
        return sum(pending) > self._size.max_bytes // 2

    def _delete_finished(self) -> None:
        """Removes closed segments that are fully shipped. Their offsets go with the next commit, not before."""
        segments = self._segments()
        for path in segments:
            # The order matters: a segment found closed does not grow any more, so its size is final.
            if is_finished(path) and self._is_shipped(path) and not is_retained(path, segments):
                path.unlink()
        self._delete_leftovers()

    def _delete_leftovers(self) -> None:
        for path in self._directory.glob(f"*{names.RESERVE}"):
            if is_finished(path):
                path.unlink(missing_ok=True)
        for path in self._directory.glob("*.new*"):
            if is_finished(path) and time.time() - path.stat().st_mtime > _LEFTOVER_SECONDS:
                path.unlink(missing_ok=True)


def _take_lock(path: Path, seconds: float) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise SpoolLockedError(f"Another shipper (pid {holder}) works on {path.parent}.") from None
        # The file is for people alone, so a full disk must not stop the shipper here.
        with suppress(OSError):
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
        return fd
