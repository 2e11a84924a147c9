"""The use of deployments that workers count together, with a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from integrations.health.minute_use import MinuteUse
from tests.gateway.scene import Clock
from tests.integrations.health.workers import new_target
from tests.waiting import eventually


@asynccontextmanager
async def worker(clock: Clock, url: str = "") -> AsyncIterator[MinuteUse]:
    use = MinuteUse(url or settings.REDIS_URL, clock=clock)
    task = asyncio.create_task(use.follow())
    try:
        yield use
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await use.close()


async def test_use__two_workers__count_together_and_anew_each_minute(stores: None) -> None:
    clock, number = Clock(), new_target().integration_id
    async with worker(clock) as first, worker(clock) as second:
        for _ in range(6):
            first.note(number, requests=1, tokens=100)
        assert not first.is_used_up(number, rpm=10, tpm=1000)
        # A worker reads the sums with what it adds itself, and both connect at the same time.
        await first.sync()
        second.note(number, requests=4, tokens=-50)
        await eventually(lambda: second.is_used_up(number, rpm=10, tpm=None))
        assert not second.is_used_up(number, rpm=11, tpm=551)
        assert second.is_used_up(number, rpm=None, tpm=550)
        first.note(number, tokens=1)
        await eventually(lambda: first.is_used_up(number, rpm=10, tpm=None))
        clock.now += 60.0
        assert not first.is_used_up(number, rpm=1, tpm=1)
        first.note(number, requests=1)
        assert first.is_used_up(number, rpm=1, tpm=None)


async def test_use__redis_away__a_worker_keeps_its_own_counts() -> None:
    clock, number = Clock(), new_target().integration_id
    async with worker(clock, "redis://127.0.0.1:1/0") as use:
        use.note(number, requests=2, tokens=10)
        await use.sync()
        assert use.is_used_up(number, rpm=2, tpm=None)
        assert not use.is_used_up(number, rpm=3, tpm=11)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-500, 500)), max_size=30), st.integers(1, 40))
def test_use__any_calls__used_up_exactly_from_the_limit_on(calls: list[tuple[int, int]], limit: int) -> None:
    use = MinuteUse("redis://127.0.0.1:1/0", clock=Clock())
    for requests, tokens in calls:
        use.note(1, requests=requests, tokens=tokens)
    assert use.is_used_up(1, rpm=limit, tpm=None) == (sum(one for one, _ in calls) >= limit)
    assert use.is_used_up(1, rpm=None, tpm=limit) == (sum(one for _, one in calls) >= limit)
    assert not use.is_used_up(1, rpm=None, tpm=None)
