"""Settlements that travel with the next admission, and those that may not wait for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from core.caller_limits import CallerLimits
from gateway.limits import open_batches
from gateway.limits.claims import Reservation
from gateway.limits.minute_limits import Caller
from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.workers import DOLLAR, Worker, spent, worker
from tests.waiting import eventually

PLENTY: dict[str, Any] = {"monthly_budget_usd": Decimal(1000), "hard_stop": True, "tokens_per_minute": 1_000_000}


@pytest.fixture
def endless_wait(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets no settlement leave by the timer."""
    monkeypatch.setattr(open_batches, "MAX_WAIT_SECONDS", 3600.0)
    yield


async def admitted(one: Worker, **claim: Any) -> Reservation:
    answer = await one.ask(**claim)
    assert answer.reservation is not None, answer.refused_by
    return answer.reservation


async def spent_now(own: OwnRedis, one: Worker) -> int:
    """Returns the month's spend after all that the worker has sent so far: Redis runs commands in order."""
    await one.limiter.since(one.month)
    return spent(own, one.month)[0]


def commands(own: OwnRedis) -> int:
    found: Any = own.client.info("commandstats")
    return int(found["cmdstat_evalsha"]["calls"])


@pytest.mark.usefixtures("endless_wait")
async def test_requests_one_after_the_other__are_one_command_each(own_redis: OwnRedis) -> None:
    async with worker(own_redis, **PLENTY) as one:
        one.limiter.settle(await admitted(one, tokens=9, cost=9), 8, 7)
        before = commands(own_redis)
        for number in range(1, 21):
            reservation = await admitted(one, tokens=9, cost=9)
            assert spent(own_redis, one.month) == (7 * number, 9)
            one.limiter.settle(reservation, 10, 7)
        assert commands(own_redis) - before == 20


async def test_settlement_that_no_admission_follows__is_sent_alone(own_redis: OwnRedis) -> None:
    async with worker(own_redis, **PLENTY) as one:
        one.limiter.settle(await admitted(one, cost=9), 0, 7)
        await eventually(lambda: spent(own_redis, one.month) == (7, 0))


@pytest.mark.usefixtures("endless_wait")
async def test_more_settlements_than_a_command_takes__do_not_wait(own_redis: OwnRedis) -> None:
    async with worker(own_redis, **PLENTY) as one:
        for reservation in [await admitted(one, cost=9) for _ in range(130)]:
            one.limiter.settle(reservation, 0, 7)
        assert await spent_now(own_redis, one) == 7 * 100
        await admitted(one)
        assert spent(own_redis, one.month)[0] == 7 * 130


@pytest.mark.usefixtures("endless_wait")
@pytest.mark.parametrize("used", [(19, 9), (9, 19)])
async def test_request_that_used_more_than_twice_what_it_reserved__is_settled_at_once(
    own_redis: OwnRedis, used: tuple[int, int]
) -> None:
    async with worker(own_redis, **PLENTY) as one:
        one.limiter.settle(await admitted(one, tokens=9, cost=9), *used)
        assert await spent_now(own_redis, one) == used[1]


@pytest.mark.usefixtures("endless_wait")
@pytest.mark.parametrize(
    ("limits", "claim"),
    [
        ({**PLENTY, "tokens_per_minute": 100}, {"tokens": 50}),
        ({**PLENTY, "monthly_budget_usd": Decimal(10)}, {"cost": 5 * DOLLAR}),
        ({**PLENTY, "session_budget_usd": Decimal(10)}, {"cost": 5 * DOLLAR, "session": "s"}),
    ],
)
async def test_request_near_a_limit__is_settled_at_once(
    own_redis: OwnRedis, limits: dict[str, Any], claim: dict[str, Any]
) -> None:
    async with worker(own_redis, **limits) as one:
        one.limiter.settle(await admitted(one, **claim), 0, 1 if claim.get("cost") else 0)
        await one.limiter.since(one.month)
        assert spent(own_redis, one.month)[1] == 0
        # Now that the limit is not near any more, the next one waits.
        waiting = await admitted(one, tokens=1, cost=1, session=claim.get("session", ""))
        one.limiter.settle(waiting, 0, 1)
        await one.limiter.since(one.month)
        assert spent(own_redis, one.month)[1] == 1


@pytest.mark.usefixtures("endless_wait")
async def test_month_that_only_warns__is_never_near(own_redis: OwnRedis) -> None:
    async with worker(own_redis, monthly_budget_usd=Decimal("0.0000000001")) as one:
        one.limiter.settle(await admitted(one, cost=9), 0, 7)
        assert await spent_now(own_redis, one) == 0


@pytest.mark.usefixtures("endless_wait")
async def test_place_among_few__is_free_at_once_for_the_other_worker(own_redis: OwnRedis) -> None:
    caller = Caller(7, CallerLimits(concurrent_requests=1))
    async with worker(own_redis) as one, worker(own_redis) as other:

        async def ask(each: Worker) -> Any:
            return await each.limiter.admit(each.limits, msgspec.structs.replace(each.claim(), caller=caller))

        held = await ask(one)
        assert (await ask(other)).refused_by == "key_concurrency"
        one.limiter.settle(held.reservation, 0, 0)
        await one.limiter.since(one.month)
        assert (await ask(other)).refused_by == ""


@pytest.mark.usefixtures("endless_wait")
async def test_worker_that_stops__has_settled_all(own_redis: OwnRedis) -> None:
    async with worker(own_redis, **PLENTY) as one:
        one.limiter.settle(await admitted(one, cost=9), 0, 7)
        assert spent(own_redis, one.month) == (0, 9)
    assert spent(own_redis, one.month) == (7, 0)


@pytest.mark.usefixtures("endless_wait")
async def test_redis_lost_while_a_settlement_waits__has_the_spend_looked_up(fragile_redis: OwnRedis) -> None:
    async with worker(fragile_redis, **PLENTY) as one:
        one.limiter.settle(await admitted(one, cost=9), 0, 7)
        fragile_redis.service.stop(signal.SIGKILL)
        await eventually(lambda: not one.limiter.is_connected)
        one.doubts.clear()
        # This worker decides by what it knows itself, the waiting settlement included.
        await admitted(one)
        assert one.limiter.known_of(one.month).spent == 7
        fragile_redis.start()
        await eventually(lambda: one.month in one.doubts)
