"""Runs blocking functions in threads that the process does not join at its end.

`asyncio.to_thread` joins its threads: a stop during a migration of hours would take those hours.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_background(function: Callable[[], T]) -> T:
    """A cancelled caller leaves the function running."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # None only where T is

    def run() -> None:
        result, failure = None, None
        try:
            result = function()
        except BaseException as error:  # The exception is passed to the caller that waits.
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="preparation", daemon=True).start()
    return await done
