"""Admission by a worker's own figures while Redis is paused, killed or not started yet."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from core.caller_limits import CallerLimits
from gateway.limits.channel import Channel
from gateway.limits.claims import UNCOUNTED, Claim
from gateway.limits.keys import Scope
from gateway.limits.minute_limits import Caller
from gateway.limits.server import _RECONNECT_SECONDS
from gateway.project_settings.limits import ProjectLimits
from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.workers import (
    DOLLAR,
    PROJECT,
    SOON_SECONDS,
    Worker,
    new_limiter,
    spent,
    worker,
)
from tests.waiting import TIMEOUT_SECONDS, eventually


async def paused(own: OwnRedis) -> None:
    own.service.send(signal.SIGSTOP)


async def killed(own: OwnRedis) -> None:
    own.service.stop(signal.SIGKILL)


ARRIVED_US = 1_795_290_000_000_000

Away = Callable[[OwnRedis], Awaitable[None]]
AWAY = pytest.mark.parametrize("away", [paused, killed])


def noticed_after(away: Away) -> float:
    return SOON_SECONDS if away is paused else TIMEOUT_SECONDS


@AWAY
async def test_redis_away__rates__are_this_workers_share(fragile_redis: OwnRedis, away: Away) -> None:
    async with worker(
        fragile_redis, redis_timeout=noticed_after(away), requests_per_minute=6, tokens_per_minute=100
    ) as one:
        await away(fragile_redis)
        assert [(await one.ask(tokens=10)).refused_by for _ in range(4)] == ["", "", "", "requests"]
        one.limits = ProjectLimits(tokens_per_minute=100)
        assert [(await one.ask(tokens=10)).refused_by for _ in range(3)] == ["", "", "tokens"]
        fragile_redis.service.send(signal.SIGCONT)


async def test_redis_away__workers_of_many_hosts__admit_each_limit_once_together(fragile_redis: OwnRedis) -> None:
    """Five workers, of which a limit below their number gives some none."""
    fragile_redis.service.stop()
    holders: dict[str, dict[str, Any]] = {
        "7": {"requests_per_minute": 7},
        "3": {"concurrent_requests": 3},
        "60": {"tokens_per_minute": 60},
    }
    admitted: Counter[str] = Counter()
    for number in range(5):
        limiter = new_limiter(fragile_redis, 1, 60.0, [])
        limiter.share_among(5, number)
        for (user, limits), serial in product(holders.items(), range(8)):
            caller = Caller(user_id=user, user_limits=CallerLimits(**limits))
            claim = Claim(f"{number}-{user}-{serial}", PROJECT, "", ARRIVED_US, tokens=3, cost=0, caller=caller)
            admitted[user] += not (await limiter.admit(ProjectLimits(), claim)).refused_by
        await limiter.close()

    # Twelve tokens a worker are four requests of three.
    assert admitted == {"7": 7, "3": 3, "60": 20}


async def test_redis_away__project_refuses_then__what_a_limit_could_refuse_and_nothing_else(
    fragile_redis: OwnRedis,
) -> None:
    fragile_redis.service.stop()
    alert_only: dict[str, Any] = {"monthly_budget_usd": Decimal(1)}
    limited = {"rpm": {"requests_per_minute": 9}, "budget": {**alert_only, "hard_stop": True}, "alerts": alert_only}
    limiter = new_limiter(fragile_redis, 1, 60.0, [])
    refused = {
        name: (await Worker(limiter, [], ProjectLimits(**limits, refuses_without_redis=True)).ask()).refused_by
        for name, limits in limited.items()
    }
    await limiter.close()

    assert refused == {"rpm": UNCOUNTED, "budget": UNCOUNTED, "alerts": ""}


@AWAY
async def test_redis_away__budgets__go_by_what_was_known_last(fragile_redis: OwnRedis, away: Away) -> None:
    budget: dict[str, Any] = {"monthly_budget_usd": Decimal(10), "hard_stop": True}
    async with worker(fragile_redis, redis_timeout=noticed_after(away), **budget) as one:
        held = (await one.ask(cost=4 * DOLLAR)).reservation
        one.limiter.settle(held, 0, 4 * DOLLAR)
        await eventually(lambda: spent(fragile_redis, one.month)[0] == 4 * DOLLAR)
        await one.ask(cost=0)  # An admission makes the worker read the month's spend.

        await away(fragile_redis)

        first, second = await one.ask(cost=5 * DOLLAR), await one.ask(cost=5 * DOLLAR)
        assert (first.refused_by, second.refused_by) == ("", "month")
        one.limiter.settle(first.reservation, 0, DOLLAR)
        assert (await one.ask(cost=5 * DOLLAR)).refused_by == ""
        fragile_redis.service.send(signal.SIGCONT)


@AWAY
async def test_redis_away__once_noticed__nobody_waits_for_it(
    fragile_redis: OwnRedis, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with worker(fragile_redis, redis_timeout=noticed_after(away), requests_per_minute=600) as one:
        await away(fragile_redis)
        await one.ask()
        assert not one.limiter.is_connected
        waits: list[Any] = []
        monkeypatch.setattr(Channel, "send", lambda *commands: waits.append(commands))
        for _ in range(50):
            await one.ask()
        assert waits == []
        fragile_redis.service.send(signal.SIGCONT)


@AWAY
async def test_redis_away_and_back__is_logged_once_each(
    fragile_redis: OwnRedis, away: Away, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="gateway.limits"):
        async with worker(fragile_redis, redis_timeout=noticed_after(away), requests_per_minute=100) as one:
            await away(fragile_redis)
            for _ in range(10):
                await one.ask()
            await _return(fragile_redis, away)
            await eventually(lambda: one.limiter.is_connected)
            assert (await one.ask()).requests >= 1
    assert [record.getMessage().split()[0] for record in caplog.records] == ["redis.away", "redis.back"]


@AWAY
async def test_redis_back__spend_of_the_outage__comes_from_the_log(fragile_redis: OwnRedis, away: Away) -> None:
    async with worker(
        fragile_redis, redis_timeout=noticed_after(away), lease=3.0, monthly_budget_usd=Decimal(10)
    ) as one:
        before, in_flight = (await one.ask(cost=DOLLAR)).reservation, (await one.ask(cost=DOLLAR)).reservation
        one.limiter.settle(before, 0, DOLLAR)
        await eventually(lambda: spent(fragile_redis, one.month) == (DOLLAR, DOLLAR))
        # No other request may be open: its reservation would be renewed, and the log's sum would never be final.
        one.limiter.settle((await one.ask()).reservation, 0, 0)
        await away(fragile_redis)
        meanwhile = (await one.ask(cost=DOLLAR)).reservation
        one.limiter.settle(meanwhile, 0, DOLLAR)
        one.doubts.clear()

        await _return(fragile_redis, away)

        await eventually(lambda: one.limiter.is_connected)
        await eventually(lambda: one.month in one.doubts)
        one.limiter.settle(in_flight, 0, DOLLAR)
        # The request log has 3 requests of 3 dollars together. A Redis that lost its data gets them from there, one
        # that kept its data counts none twice, and a reservation that a paused Redis made for a request that had given
        # up expires.
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not await _raised(one, 3 * DOLLAR):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
        assert spent(fragile_redis, one.month) == (3 * DOLLAR, 0)


async def _raised(one: Worker, amount: int) -> bool:
    since, *_ = await one.limiter.since(one.month)
    return since is not None and await one.limiter.raise_to(one.month, since, amount, final=True)


async def _return(own: OwnRedis, away: Away) -> None:
    if away is paused:
        own.service.send(signal.SIGCONT)
    else:
        own.start()


async def test_redis_not_there_at_the_start__is_used_when_it_comes(fragile_redis: OwnRedis) -> None:
    fragile_redis.service.stop()
    doubts: list[Scope] = []
    limiter = new_limiter(fragile_redis, 1, 60.0, doubts)
    one = Worker(limiter, doubts, ProjectLimits(requests_per_minute=1))
    try:
        assert [(await one.ask()).refused_by for _ in range(2)] == ["", "requests"]
        fragile_redis.start()
        await eventually(lambda: limiter.is_connected)
        assert [(await one.ask()).refused_by for _ in range(2)] == ["", "requests"]
    finally:
        await limiter.close()


async def test_redis_is_a_replica_now__is_left_until_it_is_none(
    fragile_redis: OwnRedis, caplog: pytest.LogCaptureFixture
) -> None:
    """The address may lead to another server by then, as with a proxy that follows the primary."""
    async with worker(fragile_redis, requests_per_minute=100) as one:
        fragile_redis.client.replicaof("127.0.0.1", "1")
        await one.ask()
        await eventually(lambda: "redis.away reason=it is a replica" in caplog.messages)
        fragile_redis.client.replicaof("NO", "ONE")

        await eventually(lambda: one.limiter.is_connected)
        assert (await one.ask()).requests >= 1
    assert [line for line in caplog.messages if line.startswith("redis.")] == [
        "redis.away reason=it is a replica",
        "redis.back",
    ]


async def test_redis_is_a_replica_now__settlements_of_several_projects__are_each_left_to_the_log(
    fragile_redis: OwnRedis, caplog: pytest.LogCaptureFixture
) -> None:
    """Their commands leave in one write, and the refusals come in one read, of which the first ends the connection."""
    async with worker(fragile_redis, monthly_budget_usd=Decimal(10)) as one:
        claims = [Claim(f"r{number}", f"project-{number}", "", one.arrived_us, 0, DOLLAR) for number in range(8)]
        admissions = [await one.limiter.admit(one.limits, claim) for claim in claims]
        fragile_redis.client.replicaof("127.0.0.1", "1")

        for admission in admissions:
            one.limiter.settle(admission.reservation, 0, DOLLAR)

        await eventually(lambda: "redis.away reason=it is a replica" in caplog.messages)
        fragile_redis.client.replicaof("NO", "ONE")
        await eventually(lambda: {scope.project for scope in one.doubts} >= {claim.project for claim in claims})
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_connection__ended_while_idle__is_made_again_without_a_word(
    fragile_redis: OwnRedis, caplog: pytest.LogCaptureFixture
) -> None:
    async with worker(fragile_redis, requests_per_minute=100) as one:
        # A connection that ends as soon as it is made is not made again at once.
        await asyncio.sleep(_RECONNECT_SECONDS)
        made = fragile_redis.client.info("stats")["total_connections_received"]
        fragile_redis.client.client_kill_filter(_type="normal", skipme=True)
        await eventually(lambda: fragile_redis.client.info("stats")["total_connections_received"] > made)
        await eventually(lambda: one.limiter.is_connected)
        assert (await one.ask()).requests >= 1
    assert not [line for line in caplog.messages if line.startswith("redis.")]
