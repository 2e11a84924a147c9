"""Several statements at once, each thread with a connection of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from analytics.clickhouse import client

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_order(run: Callable[[Job], Result], jobs: Sequence[Job], *, workers: int) -> Generator[Result]:
    """Results in the order of `jobs`, which start in that order too. After an error no further job starts."""
    together = threading.Barrier(workers)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque(pool.submit(run, job) for job in jobs)
        try:
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            # Connections belong to their threads; the barrier gives every thread one of these.
            for _ in range(workers):
                pool.submit(_close, together)


def _close(together: threading.Barrier) -> None:
    together.wait()
    client.close()
