"""What workers lease of the limits ahead: never more than the limits allow, and returned when it is not used."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import msgspec

from core.caller_limits import CallerLimits
from gateway.limits.claims import Admission
from gateway.limits.minute_limits import Caller
from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.workers import Worker, spent, worker
from tests.waiting import eventually

PLENTY: dict[str, Any] = {
    "monthly_budget_usd": Decimal(1000),
    "hard_stop": True,
    "tokens_per_minute": 100_000_000,
    "requests_per_minute": 1_000_000,
}
KEY = Caller(7, CallerLimits(concurrent_requests=10_000, requests_per_minute=1_000_000))


def commands(own: OwnRedis) -> int:
    found: Any = own.client.info("commandstats")
    return int(found["cmdstat_evalsha"]["calls"])


async def request(one: Worker, **claim: Any) -> Admission:
    asked = msgspec.structs.replace(one.claim(**claim), caller=KEY)
    return await one.limiter.admit(one.limits, asked)


async def traffic(one: Worker, requests: int, *, cost: int = 9, used: int = 7) -> None:
    """Sends requests one after the other, each of which ends at once, until the worker has leased ahead."""
    for _ in range(requests):
        admission = await request(one, tokens=10, cost=cost)
        assert not admission.refused_by
        one.limiter.settle(admission.reservation, 8, used)
        await asyncio.sleep(0.001)


async def test_requests_that_follow_fast__ask_redis_for_few(own_redis: OwnRedis) -> None:
    async with worker(own_redis, ahead=0.1, **PLENTY) as one:
        await traffic(one, 200)
        before = commands(own_redis)
        await traffic(one, 400)
        print("COMMANDS", commands(own_redis) - before)
        assert commands(own_redis) - before < 100
        await eventually(lambda: spent(own_redis, one.month) == (7 * 600, 0))
        counts = own_redis.client.mget(*sorted(own_redis.client.keys("*requests:*")))
        assert [int(value) for value in counts] == [600, 600]
        tokens = own_redis.client.mget(*own_redis.client.keys("*tokens:*"))
        assert [int(value) for value in tokens] == [8 * 600]
        assert not own_redis.client.keys("*open")
        assert not own_redis.client.keys("*held")
