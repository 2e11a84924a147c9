"""Two questions at once: each takes a core for its milliseconds, and the second need not wait for the first."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")

# More questions than that wait for each other, as they would without this.
_THREADS = 8

_threads: ThreadPoolExecutor


def _renew() -> None:
    global _threads
    _threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="analytics")


_renew()
# A forked worker has none of its parent's threads.
os.register_at_fork(after_in_child=_renew)


def both(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """What the two return. They must not use the SQL database: its connection belongs to the calling thread.

    Raises what the second raises, or else the first, when both have ended.
    """
    running = _threads.submit(first)
    try:
        later = second()
    finally:
        running.exception()
    return running.result(), later
