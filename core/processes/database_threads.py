"""Work on the SQL database for the event loop, which must not block."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")


async def in_database_thread(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Returns what `work` returns, run in a thread of the loop's own. Before and after it the thread lets go of a
    connection that is broken or old, or that a pool has lent."""
    found: T = await database_sync_to_async(work, thread_sensitive=False)(*args, **options)
    return found
