from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")


async def in_database_thread(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Runs `work` in a thread of the event loop. Before and after, the thread drops a connection that is broken, old or
    lent by a pool."""
    found: T = await database_sync_to_async(work, thread_sensitive=False)(*args, **options)
    return found
