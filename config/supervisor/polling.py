from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_PAUSE_SECONDS = 0.02


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():  # noqa: ASYNC110 - nothing in this process could set an Event
        await asyncio.sleep(_PAUSE_SECONDS)
