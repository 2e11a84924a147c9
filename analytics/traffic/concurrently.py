"""Runs several statements at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_order(run: Callable[[Job], Result], jobs: Sequence[Job], *, workers: int) -> Generator[Result]:
    """Yields the results in the order of `jobs`, which start in that order. After an error no further job starts."""
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque(pool.submit(run, job) for job in jobs)
        try:
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
