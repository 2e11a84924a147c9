from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

_SHIP_SECONDS = 600.0


def wait_until(condition: Callable[[], bool], failure: str, *, seconds: float, pause: float = 0.05) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(failure)
        time.sleep(pause)


def wait_until_shipped(spool: Path) -> None:
    from analytics.shipper.spool_status import read_status

    wait_until(
        lambda: not read_status(spool).unshipped_bytes, "the shipper did not ship all records", seconds=_SHIP_SECONDS
    )
