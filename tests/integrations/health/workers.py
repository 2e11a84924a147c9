"""Makes monitors as web workers have them, each with its tasks running in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

from integrations.health.monitor import HealthMonitor
from integrations.health.targets import Target
from tests.waiting import eventually

# The ids are above those of the tests' databases, and each is used once, since the suite's Redis keeps its data.
_ids = count(1_000_000)


def new_target(model: str = "model") -> Target:
    return Target(next(_ids), "provider", model)


@asynccontextmanager
async def following(monitor: HealthMonitor) -> AsyncIterator[HealthMonitor]:
    tasks = [asyncio.create_task(monitor.sync.run()), asyncio.create_task(monitor.use.follow())]
    try:
        yield monitor
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await monitor.close()


@asynccontextmanager
async def workers(redis_url: str, number: int) -> AsyncIterator[list[HealthMonitor]]:
    """Yields monitors that already listen to each other."""
    async with AsyncExitStack() as stack:
        monitors = [await stack.enter_async_context(following(HealthMonitor(redis_url))) for _ in range(number)]
        await connected(*monitors)
        yield monitors


async def connected(*monitors: HealthMonitor) -> None:
    await eventually(lambda: all(monitor.connected for monitor in monitors))
