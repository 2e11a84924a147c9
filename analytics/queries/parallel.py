"""Runs queries in parallel; each takes one core for some milliseconds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")

# Further queries wait for a free thread.
_THREADS = 8

_threads: ThreadPoolExecutor


def _renew() -> None:
    global _threads
    _threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="analytics")


_renew()
# A forked worker does not inherit its parent's threads, so it gets a pool of its own.
os.register_at_fork(after_in_child=_renew)


def both(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Runs both in parallel.

    They must not use the SQL database, whose connection is bound to its thread. The second one runs in the caller's
    thread, so it may call `both` itself; the first one may not, since all threads might wait for each other. Raises the
    second's error, or else the first's, when both have ended.
    """
    running = _threads.submit(first)
    try:
        later = second()
    finally:
        running.exception()
    return running.result(), later


def all_of(functions: Sequence[Callable[[], Result]]) -> list[Result]:
    running = [_threads.submit(function) for function in functions[:-1]]
    try:
        last = [function() for function in functions[-1:]]
    finally:
        for future in running:
            future.exception()
    return [*(future.result() for future in running), *last]
