from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import close_old_connections

from agent.worker.limits import TOOL_THREADS

T = TypeVar("T")

_tool_threads = ThreadPoolExecutor(TOOL_THREADS, thread_name_prefix="agent-tool")


async def in_thread(work: Callable[..., T], *args: Any, **named: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, _looked_after, work, args, named)


async def in_tool_thread(work: Callable[..., T], *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(_tool_threads, _looked_after, work, args, {})


async def to_the_end(work: Callable[..., T], *args: Any, **named: Any) -> T:
    """Delays a cancellation until the work is done, because its result is needed."""
    task = asyncio.ensure_future(in_thread(work, *args, **named))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _looked_after(work: Callable[..., T], args: tuple[Any, ...], named: dict[str, Any]) -> T:
    close_old_connections()
    try:
        return work(*args, **named)
    finally:
        close_old_connections()
