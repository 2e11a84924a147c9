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
# Most conditions ask a service, which costs it more than the wait: what takes long is asked less often, and a wait gets
# longer by a twentieth at most. An alert that comes after half a minute costs 28 CPU seconds so, and 35 without.
_SHARE_OF_WAIT = 0.05
_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.05, 0.25


def wait_until(condition: Callable[[], T | None], *, seconds: float = TIMEOUT_SECONDS, what: str = "") -> T:
    """Returns the condition's first result that is neither None nor False.

    Raises an AssertionError that names `what` after `seconds`.
    """
    started = time.monotonic()
    pause = _FIRST_PAUSE_SECONDS
    while True:
        result = condition()
        if result is not None and result is not False:
            return result
        waited = time.monotonic() - started
        if waited > seconds:
            raise AssertionError(f"not within {seconds:.0f} seconds: {what or condition}")
        time.sleep(pause)
        pause = min(2 * pause, max(_PAUSE_SECONDS, _long_pause(waited)))


async def eventually(condition: Callable[[], bool], *, seconds: float = TIMEOUT_SECONDS) -> float:
    """Runs the event loop until the condition holds; returns the seconds this took.

    Raises an AssertionError after `seconds`.
    """
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < seconds, f"not within {seconds:.0f} seconds: {condition}"
        await asyncio.sleep(max(_FIRST_PAUSE_SECONDS, _long_pause(waited)))
    return time.monotonic() - started


def _long_pause(waited: float) -> float:
    return min(waited * _SHARE_OF_WAIT, _MAX_PAUSE_SECONDS)
