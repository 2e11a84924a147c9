"""A budget whose spend is not known yet: its first admissions wait for the request log, for a limited time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from time import time_ns
from uuid import uuid4

import pytest

from analytics.errors import AnalyticsUnavailableError
from gateway.limits import seeding
from gateway.limits.claims import Claim
from gateway.limits.keys import Scope, month_limits, month_of
from gateway.limits.limiter import Limiter
from gateway.limits.seeding import Seeder, Times
from gateway.limits.units import to_units
from gateway.project_settings.limits import ProjectLimits
from tests.factories.analytics import make_entry, store
from tests.gateway.limits.conftest import OwnRedis
from tests.waiting import TIMEOUT_SECONDS, eventually

PROJECT = str(uuid4())
BUDGET = Decimal("0.01")
LIMITS = ProjectLimits(monthly_budget_usd=BUDGET, hard_stop=True, session_budget_usd=BUDGET)
COST = to_units(BUDGET) // 100


@dataclass
class Log:
    """The request log's figure for each scope."""

    spent: int
    is_broken: bool = False
    queried: list[Scope] = field(default_factory=list)
    # The projects about which the log answers once `go_on` is set.
    slow_projects: set[str] = field(default_factory=set)
    go_on: threading.Event = field(default_factory=threading.Event)

    def spends(self, scopes: dict[Scope, Times]) -> dict[Scope, int]:
        self.queried += scopes
        if self.is_broken:
            raise AnalyticsUnavailableError("it is away")
        if not self.slow_projects.isdisjoint(scope.project for scope in scopes):
            assert self.go_on.wait(TIMEOUT_SECONDS)
        return dict.fromkeys(scopes, self.spent)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log(to_units(BUDGET))
    monkeypatch.setattr(seeding, "_spends", made.spends)
    return made


@asynccontextmanager
async def worker(own: OwnRedis, *, log_timeout: float = TIMEOUT_SECONDS, seeds: bool = True) -> AsyncIterator[Limiter]:
    seeder = Seeder(600.0)
    limiter = Limiter(
        own.url,
        workers=2,
        lease_seconds=60.0,
        timeout=TIMEOUT_SECONDS,
        on_doubt=seeder.doubt,
        log_timeout=log_timeout,
    )
    await limiter.tried()
    task = asyncio.create_task(seeder.run(limiter)) if seeds else None
    try:
        yield limiter
    finally:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await limiter.close()


def claims(count: int, *, session: str = "", arrived_us: int | None = None) -> list[Claim]:
    arrived = arrived_us or time_ns() // 1000
    return [Claim(f"r-{uuid4()}", PROJECT, session, arrived + n, 0, COST) for n in range(count)]


async def outcomes(limiters: list[Limiter], requests: list[Claim]) -> set[str]:
    found = await asyncio.gather(
        *(limiters[n % len(limiters)].admit(LIMITS, claim) for n, claim in enumerate(requests))
    )
    return {admission.refused_by for admission in found}


async def test_thousand_at_once__of_a_month_that_is_spent__none_admitted_by_two_workers(
    own_redis: OwnRedis, log: Log
) -> None:
    async with worker(own_redis) as one, worker(own_redis) as two:
        assert await outcomes([one, two], claims(1000)) == {"month"}
        # Redis loses its data, and then the next month begins.
        own_redis.client.flushall()
        assert await outcomes([one, two], claims(1000)) == {"month"}
        _, next_month = month_limits(month_of(time_ns() // 1000))
        after = int(next_month.timestamp()) * 1_000_000
        assert await outcomes([one, two], claims(1000, arrived_us=after)) == {"month"}
    own_redis.client.flushall()
    async with worker(own_redis) as fresh, worker(own_redis) as other:
        assert await outcomes([fresh, other], claims(1000)) == {"month"}


async def test_thousand_at_once__of_a_session_that_is_spent__none_admitted(own_redis: OwnRedis, log: Log) -> None:
    only_session = ProjectLimits(session_budget_usd=BUDGET)
    async with worker(own_redis) as one:
        requests = claims(1000, session="of yesterday")
        found = await asyncio.gather(*(one.admit(only_session, claim) for claim in requests))
        assert {admission.refused_by for admission in found} == {"session"}


async def test_settings_saved_anew__log_is_queried_before_any_admission(own_redis: OwnRedis, log: Log) -> None:
    log.spent = 0
    async with worker(own_redis) as one:
        assert await outcomes([one], claims(1)) == {""}
        # The settings had no budget meanwhile, so that spend is only in the log.
        log.spent = to_units(BUDGET)
        saved = ProjectLimits(monthly_budget_usd=BUDGET, hard_stop=True, set_at_us=time_ns() // 1000)
        found = await asyncio.gather(*(one.admit(saved, claim) for claim in claims(100)))
        assert {admission.refused_by for admission in found} == {"month"}


async def test_room_in_the_budget__after_the_look__is_what_the_log_leaves(own_redis: OwnRedis, log: Log) -> None:
    log.spent = to_units(BUDGET) - 7 * COST
    async with worker(own_redis) as one, worker(own_redis) as two:
        found = await asyncio.gather(*(limiter.admit(LIMITS, claim) for limiter in (one, two) for claim in claims(50)))
        assert sum(not admission.refused_by for admission in found) == 7
        assert log.queried


async def test_log__that_does_not_answer__is_waited_for_once(own_redis: OwnRedis, log: Log) -> None:
    async with worker(own_redis, log_timeout=0.05, seeds=False) as one:
        assert await outcomes([one], claims(50)) == {""}
        assert not one.waits
        # The session is unknown as well.
        assert await outcomes([one], claims(10, session="another")) == {""}


async def test_log__that_fails__is_not_waited_for(own_redis: OwnRedis, log: Log) -> None:
    log.is_broken = True
    async with worker(own_redis) as one:
        assert await outcomes([one], claims(10)) == {""}
        assert log.queried


async def test_log__that_answers_about_one_project_late__answers_about_another_at_once(
    own_redis: OwnRedis, log: Log
) -> None:
    slow = str(uuid4())
    log.slow_projects.add(slow)
    async with worker(own_redis) as one:
        waiting = asyncio.create_task(one.admit(LIMITS, Claim("r-slow", slow, "", time_ns() // 1000, 0, COST)))
        await eventually(lambda: any(scope.project == slow for scope in log.queried))

        assert await outcomes([one], claims(10)) == {"month"}
        assert await outcomes([one], claims(10, session="s")) == {"month"}
        assert not waiting.done()
        log.go_on.set()
        assert (await waiting).refused_by == "month"


async def test_log__that_failed_and_answers_again__is_waited_for_again(own_redis: OwnRedis, log: Log) -> None:
    log.is_broken = True
    async with worker(own_redis) as one:
        assert await outcomes([one], claims(1)) == {""}
        assert not one.waits
        log.is_broken = False
        await eventually(lambda: one.waits)
        only_session = ProjectLimits(session_budget_usd=BUDGET)
        found = await asyncio.gather(*(one.admit(only_session, claim) for claim in claims(50, session="new")))
        assert {admission.refused_by for admission in found} == {"session"}


async def test_month_without_hard_stop__waits_for_nothing(own_redis: OwnRedis, log: Log) -> None:
    soft = ProjectLimits(monthly_budget_usd=BUDGET)
    async with worker(own_redis, seeds=False) as one:
        (claim,) = claims(1)
        assert (await one.admit(soft, claim)).refused_by == ""
        assert not log.queried


async def test_request__cancelled_while_it_waits__leaves_the_others_their_answer(own_redis: OwnRedis, log: Log) -> None:
    async with worker(own_redis) as one:
        tasks = [asyncio.create_task(one.admit(LIMITS, claim)) for claim in claims(20)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert {admission.refused_by for admission in found[1:] if not isinstance(admission, BaseException)} == {
            "month"
        }


@pytest.mark.usefixtures("clickhouse")
@pytest.mark.parametrize(
    ("limits", "refused_by"),
    [
        (ProjectLimits(monthly_budget_usd=BUDGET, hard_stop=True), "month"),
        (ProjectLimits(session_budget_usd=BUDGET), "session"),
    ],
)
async def test_clock_set_back_and_redis_lost__what_was_spent_is_of_a_time_to_come_and_counts(
    own_redis: OwnRedis, tmp_path: Path, limits: ProjectLimits, refused_by: str
) -> None:
    """A random history once found that, after the clock was set back, the log was queried only for earlier requests."""
    project, now = str(uuid4()), time_ns() // 1000
    _, month_end = month_limits(month_of(now))
    ahead = min(now + 600_000_000, int(month_end.timestamp()) * 1_000_000 - 1)
    spent = make_entry(project_id=project, session_id="s", ts=ahead, cost_usd=str(BUDGET))
    await asyncio.to_thread(store, tmp_path, spent)

    async with worker(own_redis) as one:
        admission = await one.admit(limits, Claim(f"r-{uuid4()}", project, "s", now, 0, COST))

    assert admission.refused_by == refused_by
