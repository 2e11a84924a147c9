"""A worker's admissions and settlements over Redis, also while Redis refuses to count or has lost its figures."""

from __future__ import annotations

import asyncio
import logging
import signal
from decimal import Decimal
from typing import Any

import pytest

from gateway.limits.batch import Batch
from gateway.limits.claims import Admission, Reservation
from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.workers import (
    DOLLAR,
    SOON_SECONDS,
    Worker,
    spent,
    worker,
)
from tests.waiting import eventually


async def test_two_workers__at_once__admit_together_what_one_would(own_redis: OwnRedis) -> None:
    budget: dict[str, Any] = {"monthly_budget_usd": Decimal(10), "hard_stop": True}
    async with worker(own_redis, **budget) as one, worker(own_redis, **budget) as other:
        answers = await asyncio.gather(*[each.ask(cost=DOLLAR) for each in [one, other] * 25])
        admitted = [answer for answer in answers if not answer.refused_by]
        assert len(admitted) == 10
        assert {answer.refused_by for answer in answers} == {"", "month"}

        for answer in admitted[:5]:
            one.limiter.settle(answer.reservation, 0, DOLLAR // 2)
        await eventually(lambda: spent(own_redis, one.month) == (5 * DOLLAR // 2, 5 * DOLLAR))
        assert [(await one.ask(cost=DOLLAR)).refused_by for _ in range(4)] == ["", "", "month", "month"]


async def test_request__cancelled_during_its_admission__holds_nothing(own_redis: OwnRedis) -> None:
    async with worker(own_redis, monthly_budget_usd=Decimal(10)) as one:
        await one.ask(cost=1)
        task = asyncio.create_task(one.ask(cost=DOLLAR))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await one.ask(cost=1)
        await eventually(lambda: spent(own_redis, one.month) == (0, 2))


async def test_request__cancelled_as_its_answer_comes__holds_nothing(
    own_redis: OwnRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit = Batch.admit

    def admit_and_cancel(batch: Batch, reservation: Reservation) -> asyncio.Future[Any]:
        answer = admit(batch, reservation)
        answer.add_done_callback(lambda _: task.cancel())
        return answer

    async with worker(own_redis, monthly_budget_usd=Decimal(10)) as one:
        await one.ask(cost=1)
        with monkeypatch.context() as patched:
            patched.setattr(Batch, "admit", admit_and_cancel)
            task = asyncio.create_task(one.ask(cost=DOLLAR))
            with pytest.raises(asyncio.CancelledError):
                await task
        await one.ask(cost=1)
        await eventually(lambda: spent(own_redis, one.month) == (0, 2))


async def test_refused_request__cancelled_during_its_admission__gives_no_room_to_others(own_redis: OwnRedis) -> None:
    async with worker(own_redis, tokens_per_minute=10) as one:
        await one.ask(tokens=8)
        task = asyncio.create_task(one.ask(tokens=8))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await one.ask(tokens=1)).tokens == 9


async def test_redis_that_refuses__is_logged_once_and_the_worker_uses_its_own_figures(
    own_redis: OwnRedis, caplog: pytest.LogCaptureFixture
) -> None:
    async with worker(own_redis, requests_per_minute=4) as one:
        own_redis.client.config_set("maxmemory", 1)
        try:
            with caplog.at_level(logging.WARNING, logger="gateway.limits"):
                answers = [(await one.ask()).refused_by for _ in range(4)]
        finally:
            own_redis.client.config_set("maxmemory", 0)
        assert answers == ["", "", "requests", "requests"]
        assert [record.getMessage().split()[0] for record in caplog.records] == ["redis.refuses"]


async def test_redis_that_refuses_a_reservation__has_admitted_nobody(
    own_redis: OwnRedis, caplog: pytest.LogCaptureFixture
) -> None:
    async with worker(own_redis, session_budget_usd=Decimal(1)) as one:
        await one.ask(session="s", cost=1)
        own_redis.client.config_set("maxmemory", 1)
        try:
            with caplog.at_level(logging.WARNING, logger="gateway.limits"):
                held = (await one.ask(session="s", cost=1)).reservation
        finally:
            own_redis.client.config_set("maxmemory", 0)
        assert [record.getMessage().split()[0] for record in caplog.records] == ["redis.refuses"]
        assert held is not None
        assert held.name == ""


async def test_redis_that_refused_a_settlement__is_doubted_once_it_accepts_again(
    own_redis: OwnRedis, caplog: pytest.LogCaptureFixture
) -> None:
    async with worker(own_redis, monthly_budget_usd=Decimal(10)) as one:
        first = (await one.ask(cost=1)).reservation
        assert first is not None
        since, *_ = await one.limiter.since(one.month)
        assert since is not None
        one.limiter.settle(first, 0, 1)
        await eventually(lambda: spent(own_redis, one.month) == (1, 0))
        assert await one.limiter.raise_to(one.month, since, 0, final=True)
        held = (await one.ask(cost=1)).reservation
        assert held is not None
        one.doubts.clear()
        own_redis.client.config_set("min-replicas-to-write", 1)
        try:
            with caplog.at_level(logging.WARNING, logger="gateway.limits"):
                one.limiter.settle(held, 0, DOLLAR)
                await eventually(lambda: "redis.refuses" in caplog.text)
        finally:
            own_redis.client.config_set("min-replicas-to-write", 0)
        with caplog.at_level(logging.WARNING, logger="gateway.limits"):
            await one.ask(cost=1)
        # The connection was never lost, so only this doubt makes the worker query the log.
        await eventually(lambda: one.month in one.doubts)
        assert [record.getMessage().split()[0] for record in caplog.records] == ["redis.refuses", "redis.accepts"]


async def test_redis_restored_from_an_older_copy__is_doubted(fragile_redis: OwnRedis) -> None:
    async with worker(fragile_redis, monthly_budget_usd=Decimal(10)) as one:
        held = (await one.ask(cost=1)).reservation
        since, *_ = await one.limiter.since(one.month)
        one.limiter.settle(held, 0, 1)
        await eventually(lambda: spent(fragile_redis, one.month) == (1, 0))
        assert await one.limiter.raise_to(one.month, since, 0, final=True)
        dump: Any = fragile_redis.client.dump(one.month.spend)
        one.limiter.settle((await one.ask(cost=1)).reservation, 0, 1)
        await eventually(lambda: spent(fragile_redis, one.month) == (2, 0))
        one.doubts.clear()

        fragile_redis.service.stop()
        await eventually(lambda: not one.limiter.is_connected)
        fragile_redis.start()
        fragile_redis.client.restore(one.month.spend, 0, dump, replace=True)
        await eventually(lambda: one.limiter.is_connected)

        await one.ask(cost=1)
        assert one.month in one.doubts


async def test_session__without_an_id__is_not_counted(own_redis: OwnRedis) -> None:
    async with worker(own_redis, session_budget_usd=Decimal(1)) as one:
        assert [
            (await one.ask(cost=2 * DOLLAR)).refused_by,
            (await one.ask(cost=2 * DOLLAR, session="s")).refused_by,
        ] == [
            "",
            "session",
        ]


async def test_requests_of_one_turn__are_one_command__each_in_its_session(own_redis: OwnRedis) -> None:
    async with worker(own_redis, requests_per_minute=100, session_budget_usd=Decimal(3)) as one:
        await one.ask()
        before: Any = own_redis.client.info("commandstats")
        answers = await asyncio.gather(*[one.ask(cost=2 * DOLLAR, session=session) for session in ("a", "b", "a", "")])
        after: Any = own_redis.client.info("commandstats")

        assert [answer.refused_by for answer in answers] == ["", "", "session", ""]
        assert [answer.requests for answer in answers] == [2, 3, 3, 4]
        assert after["cmdstat_evalsha"]["calls"] - before["cmdstat_evalsha"]["calls"] == 1
        for answer in answers[:2]:
            one.limiter.settle(answer.reservation, 0, DOLLAR)
        again = await asyncio.gather(*[one.ask(cost=2 * DOLLAR, session=session) for session in "ab"])
        assert [answer.refused_by for answer in again] == ["", ""]


async def admissions_in_later_turns(one: Worker, requests: int, **claim: Any) -> list[asyncio.Task[Admission]]:
    """Starts each admission in a later turn of the event loop than the one before."""
    tasks = []
    for _ in range(requests):
        tasks.append(asyncio.create_task(one.ask(**claim)))
        for _ in range(3):
            await asyncio.sleep(0)
    return tasks


async def test_requests_that_ask_while_an_answer_is_awaited__are_one_command(own_redis: OwnRedis) -> None:
    async with worker(own_redis, requests_per_minute=100) as one:
        await one.ask()
        before: Any = own_redis.client.info("commandstats")
        own_redis.service.send(signal.SIGSTOP)
        tasks = await admissions_in_later_turns(one, 6)
        own_redis.service.send(signal.SIGCONT)
        answers = await asyncio.gather(*tasks)
        after: Any = own_redis.client.info("commandstats")
        assert [answer.requests for answer in answers] == [2, 3, 4, 5, 6, 7]
        assert after["cmdstat_evalsha"]["calls"] - before["cmdstat_evalsha"]["calls"] == 2


async def test_redis_paused__request_during_an_awaited_answer__is_decided_by_the_worker(
    fragile_redis: OwnRedis,
) -> None:
    async with worker(fragile_redis, redis_timeout=SOON_SECONDS, requests_per_minute=4) as one:
        await one.ask()
        fragile_redis.service.send(signal.SIGSTOP)
        answers = await asyncio.gather(*await admissions_in_later_turns(one, 4))
        assert [answer.refused_by for answer in answers] == ["", "", "requests", "requests"]
        fragile_redis.service.send(signal.SIGCONT)


async def test_more_requests_than_a_command_takes__are_all_answered(own_redis: OwnRedis) -> None:
    async with worker(own_redis, requests_per_minute=500) as one:
        answers = await asyncio.gather(*[one.ask() for _ in range(600)])
        assert [answer.requests for answer in answers if not answer.refused_by] == list(range(1, 501))


async def test_lease__of_a_request_in_flight__is_renewed(own_redis: OwnRedis) -> None:
    async with worker(own_redis, lease=2.0, monthly_budget_usd=Decimal(10)) as one:
        first = await one.ask(cost=5)
        ends: Any = own_redis.client.zscore(one.month.reservations, first.reservation.name)
        await eventually(lambda: (own_redis.client.zscore(one.month.reservations, first.reservation.name) or 0) > ends)
        assert spent(own_redis, one.month) == (0, 5)


async def test_script_flushed__is_sent_again(own_redis: OwnRedis) -> None:
    async with worker(own_redis, requests_per_minute=5) as one:
        await one.ask()
        own_redis.client.script_flush()
        assert (await one.ask()).requests == 2
