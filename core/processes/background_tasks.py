"""Keeps the background work of a process going. A failure is logged with its traceback, counted for the host's monitor,
and followed by another run after a pause, which grows from a quarter of a second to four seconds."""

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
# These end the process or the coroutine, and are meant to.
_ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class Failures(msgspec.Struct):
    """The failures of one task in one process: `count` since the start of the process, the latest one at `last`, Unix
    time in seconds, with an exception of the class `error`."""

    count: int = 0
    last: float = 0.0
    error: str = ""


def keep_running(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """Starts `work()` as a task of the running loop, and again whenever it fails, until the task is cancelled or the
    work returns. A CancelledError that nobody asked the task for is a failure too."""
    return asyncio.get_running_loop().create_task(_keep_running(name, work), name=name)


def keep_thread_running(name: str, work: Callable[[], None]) -> threading.Thread:
    """Starts `work()` in a daemon thread, and again whenever it fails, until it returns."""
    thread = threading.Thread(target=_keep_thread_running, args=(name, work), name=name, daemon=True)
    thread.start()
    return thread


def watch(task: asyncio.Task[Any]) -> None:
    """Logs and counts the failure of a task that nobody waits for and that is not begun again."""
    task.add_done_callback(_note_end)


def failures_of_host() -> dict[str, Failures]:
    """Returns the failures of all living processes of this host by the name of the task."""
    found: dict[str, Failures] = {}
    for notice in read_notices(notices_dir(), _NOTICE_PREFIX):
        for name, one in _decoder.decode(notice.message).items():
            known = found.setdefault(name, Failures())
            known.count += one.count
            if one.last > known.last:
                known.last, known.error = one.last, one.error
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
    """The pauses between the runs of one task; `next` is the number of seconds before the next run."""

    def __init__(self) -> None:
        self.next = 0.0
        self._began = 0.0

    def begin(self) -> None:
        self._began = time.monotonic()

    def failed(self) -> float:
        """Notes the end of a run, and returns the next pause."""
        was_stable = time.monotonic() - self._began > _STABLE_SECONDS
        self.next = _FIRST_PAUSE_SECONDS if was_stable or not self.next else min(2 * self.next, _MAX_PAUSE_SECONDS)
        return self.next


class _Tally:
    """The failures in this process, and their notice, which is made with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: dict[str, Failures] = {}
        self._notice: NoticeWriter | None = None

    def add(self, name: str, error: BaseException) -> None:
        with self._lock:
            known = self._failures.setdefault(name, Failures())
            known.count, known.last, known.error = known.count + 1, time.time(), type(error).__name__
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
