"""Panel loads in progress. A repeated request joins the running load, so a slow store never gets the same questions
twice from one reader."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

# The longest pause between two tries of a page, with some time for a busy machine.
WANTED_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Attempt:
    session: str
    address: str
    zone: str
    panel: str


class _NotWantedError(Exception):
    """Nobody asked for the load since it began to wait for a thread."""


@dataclass(slots=True)
class _Wanted:
    until: float


@dataclass(frozen=True, slots=True)
class _Running:
    future: Future[str]
    wanted: _Wanted


class Attempts:
    """Thread-safe.

    A result that nobody took is kept for WANTED_SECONDS and given to the first who asks.
    """

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._running: dict[Attempt, _Running] = {}

    def join(self, attempt: Attempt, load: Callable[[], str]) -> Future[str]:
        """Returns the attempt's running or untaken load, else starts `load` in the caller's context."""
        now = time.monotonic()
        with self._lock:
            self._drop_unwanted(now)
            running = self._running.get(attempt)
            if running is None:
                wanted = _Wanted(now + WANTED_SECONDS)
                future = self._threads.submit(self._load, wanted, contextvars.copy_context(), load)
                running = self._running[attempt] = _Running(future, wanted)
            running.wanted.until = now + WANTED_SECONDS
            return running.future

    def taken(self, attempt: Attempt) -> None:
        with self._lock:
            self._running.pop(attempt, None)

    def forget(self, session: str) -> None:
        with self._lock:
            self._running = {attempt: one for attempt, one in self._running.items() if attempt.session != session}

    def _drop_unwanted(self, now: float) -> None:
        self._running = {attempt: one for attempt, one in self._running.items() if one.wanted.until >= now}

    @staticmethod
    def _load(wanted: _Wanted, context: contextvars.Context, load: Callable[[], str]) -> str:
        if wanted.until < time.monotonic():
            raise _NotWantedError
        return context.run(load)
