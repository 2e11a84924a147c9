"""Waits for a condition, with a limit and a reason to give up."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

_SHIP_SECONDS = 600.0


def wait_until(condition: Callable[[], bool], failure: str, *, seconds: float, pause: float = 0.05) -> None:
    """Returns when the condition holds, looked at every `pause` seconds. Raises TimeoutError with `failure` after
    `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(failure)
        time.sleep(pause)


def wait_until_shipped(spool: Path) -> None:
    """Returns when the store has all records of the spool. Raises TimeoutError after ten minutes."""
    from analytics.shipper.spool_status import read_status

    wait_until(
        lambda: not read_status(spool).unshipped_bytes, "the shipper did not ship all records", seconds=_SHIP_SECONDS
    )
