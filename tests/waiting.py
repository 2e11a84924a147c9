"""Waits for a condition, in threads and in event loops, and the time limit of all waits.

Tests share two cores with others, so a wait proves that something happens, never how fast; the limit matters only for a
test that fails. Promises in seconds are measured by `benchmarks/propagation.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT_SECONDS = 60.0

_FIRST_PAUSE_SECONDS = 0.001
_MAX_PAUSE_SECONDS = 0.05


def wait_until(condition: Callable[[], T | None], *, seconds: float = TIMEOUT_SECONDS, what: str = "") -> T:
    """Returns the condition's first result that is neither None nor False.

    Raises an AssertionError that names `what` after `seconds`.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while True:
        result = condition()
        if result is not None and result is not False:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} seconds: {what or condition}")
        time.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)


async def eventually(condition: Callable[[], bool], *, seconds: float = TIMEOUT_SECONDS) -> float:
    """Lets the event loop run until the condition holds, and returns the seconds that this took.

    Raises an AssertionError after `seconds`.
    """
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, f"not within {seconds:.0f} seconds: {condition}"
        await asyncio.sleep(_FIRST_PAUSE_SECONDS)
    return time.monotonic() - started
