"""Keeps a process's background work running. A failure is logged with its traceback, counted for the host's monitor,
and retried after a pause that grows from a quarter of a second to four seconds."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from core.processes.notices import NoticeWriter, notices_dir, read_notices

logger = logging.getLogger("core.background_tasks")

_FIRST_PAUSE_SECONDS = 0.25
_MAX_PAUSE_SECONDS = 4.0
# Work that ran for this many seconds is begun again after the first pause.
_STABLE_SECONDS = 5.0
_NOTICE_PREFIX = "tasks-"
_MAX_NOTICE_BYTES = 16 * 1024
# A periodic task that fails is run again in any case, so that a store that was away for a moment needs nobody.
_FAILURES_IN_A_ROW = 3
# These end the process or the coroutine, and are meant to.
_ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class Failures(msgspec.Struct):
    """Failures of one task in one process: `count` since the start, `in_a_row` since the last success, `error` the
    class of the latest exception.

    `alarming` is the Unix time of the latest failure that somebody should look at.
    """

    count: int = 0
    in_a_row: int = 0
    alarming: float = 0.0
    error: str = ""


def keep_running(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """Runs `work()` as a task and restarts it whenever it fails, until it is cancelled or returns.

    A CancelledError that nobody requested counts as a failure.
    """
    return asyncio.get_running_loop().create_task(_keep_running(name, work), name=name)


def keep_thread_running(name: str, work: Callable[[], None]) -> threading.Thread:
    """Runs `work()` in a daemon thread and restarts it whenever it fails, until it returns."""
    thread = threading.Thread(target=_keep_thread_running, args=(name, work), name=name, daemon=True)
    thread.start()
    return thread


def watch(task: asyncio.Task[Any]) -> None:
    task.add_done_callback(_note_end)


def note_run(name: str, error: BaseException | None) -> None:
    """Counts a run of a periodic task; the caller logs it. Three failures in a row are alarming, until a run
    succeeds.
    """
    if error is None:
        _tally.clear(name)
    else:
        _tally.add(name, error, alarming_from=_FAILURES_IN_A_ROW)


def failures_of_host() -> dict[str, Failures]:
    found: dict[str, Failures] = {}
    for notice in read_notices(notices_dir(), _NOTICE_PREFIX):
        for name, one in _decoder.decode(notice.message).items():
            known = found.setdefault(name, Failures())
            known.count += one.count
            known.in_a_row = max(known.in_a_row, one.in_a_row)
            if one.alarming >= known.alarming:
                known.alarming, known.error = one.alarming, one.error
    return found


async def _keep_running(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    pauses, task = _Pauses(), asyncio.current_task()
    while True:
        try:
            # The pause is inside, so that nothing ends this loop but the end of the work or of the process.
            await asyncio.sleep(pauses.next)
            pauses.begin()
            return await work()
        except _ENDS:
            raise
        except BaseException as error:
            if task is not None and task.cancelling():
                raise
            _note_failure(name, error, restarted_after=pauses.failed())


def _keep_thread_running(name: str, work: Callable[[], None]) -> None:
    pauses = _Pauses()
    while True:
        try:
            time.sleep(pauses.next)
            pauses.begin()
            return work()
        except BaseException as error:  # In a thread SystemExit would end no process, and be silent.
            _note_failure(name, error, restarted_after=pauses.failed())


class _Pauses:
    def __init__(self) -> None:
        self.next = 0.0
        self._began = 0.0

    def begin(self) -> None:
        self._began = time.monotonic()

    def failed(self) -> float:
        was_stable = time.monotonic() - self._began > _STABLE_SECONDS
        self.next = _FIRST_PAUSE_SECONDS if was_stable or not self.next else min(2 * self.next, _MAX_PAUSE_SECONDS)
        return self.next


class _Tally:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: dict[str, Failures] = {}
        self._notice: NoticeWriter | None = None

    def add(self, name: str, error: BaseException, *, alarming_from: int = 1) -> None:
        with self._lock:
            known = self._failures.setdefault(name, Failures())
            known.count, known.in_a_row, known.error = known.count + 1, known.in_a_row + 1, type(error).__name__
            if known.in_a_row >= alarming_from:
                known.alarming = time.time()
            self._publish()

    def clear(self, name: str) -> None:
        with self._lock:
            known = self._failures.get(name)
            if known is not None and known.in_a_row:
                known.in_a_row, known.alarming = 0, 0.0
                self._publish()

    def _publish(self) -> None:
        if self._notice is None:
            name = f"{_NOTICE_PREFIX}{os.getpid()}"
            self._notice = NoticeWriter(notices_dir(), name, max_bytes=_MAX_NOTICE_BYTES)
        self._notice.put(msgspec.json.encode(self._failures))


_decoder = msgspec.json.Decoder(dict[str, Failures])
_tally = _Tally()


def _note_failure(name: str, error: BaseException, *, restarted_after: float) -> None:
    logger.error("background_task.failed name=%s again_after_seconds=%.2f", name, restarted_after, exc_info=error)
    _tally.add(name, error)


def _note_end(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("background_task.failed name=%s", task.get_name(), exc_info=error)
        _tally.add(task.get_name(), error)


def _forget() -> None:
    global _tally
    _tally = _Tally()


# A forked process has none of its parent's tasks, and must neither hold its notice nor find its lock taken.
os.register_at_fork(after_in_child=_forget)
