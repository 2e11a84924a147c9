"""Waits for another process by repeating a question until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.patience import PATIENCE_SECONDS

T = TypeVar("T")

_PAUSE_SECONDS = 0.05


def wait_for(ask: Callable[[], T | None], *, seconds: float = PATIENCE_SECONDS, what: str = "") -> T:
    """Returns the first result that is neither None nor False; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} seconds: {what or ask}")
        time.sleep(_PAUSE_SECONDS)
