"""How fast the machine is while the suite runs: the CPU seconds of one small piece of work, done again and again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

_PAUSE_SECONDS = 15.0
_TEXT = json.dumps({str(number): [number, str(number) * 3, None] for number in range(20_000)})


@dataclass
class Pace:
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return median(self.seconds)


@contextmanager
def measured() -> Iterator[Pace]:
    """Measures in a thread of its own until the block ends, once at least."""
    pace, is_over = Pace([_work()]), threading.Event()

    def measure() -> None:
        while not is_over.wait(_PAUSE_SECONDS):
            pace.seconds.append(_work())

    thread = threading.Thread(target=measure, name="pace", daemon=True)
    thread.start()
    try:
        yield pace
    finally:
        is_over.set()
        thread.join()


def _work() -> float:
    began = time.thread_time()
    json.dumps(json.loads(_TEXT), sort_keys=True)
    return time.thread_time() - began
