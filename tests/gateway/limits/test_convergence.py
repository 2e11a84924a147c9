"""Whatever happens to Redis, workers and settlements, the figure converges to the request log's, to the last digit."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from time import time, time_ns
from typing import Any

import pytest

from gateway.limits import rate, seeding
from gateway.limits.claims import Claim, Reservation
from gateway.limits.keys import Scope, month_of
from gateway.limits.limiter import Limiter
from gateway.limits.seeding import Seeder, Times
from gateway.project_settings.limits import ProjectLimits
from tests.gateway.limits.conftest import OwnRedis
from tests.night import examples
from tests.waiting import TIMEOUT_SECONDS

PROJECT = "018f0000-0000-7000-8000-000000000003"
LIMITS = ProjectLimits(monthly_budget_usd=Decimal(90_000_000), session_budget_usd=Decimal(90_000_000), hard_stop=True)
SESSION = "s"
LEASE_SECONDS, SETTLE_SECONDS, LOG_SECONDS, REDIS_SECONDS = 0.6, 1.5, 0.7, 0.25
# More than in operation, for a machine on which requests follow each other slowly.
AHEAD_SECONDS = 1.0
MAX_UNITS = 2**50
# Doubles round integers above this bound.
EXACT_UNITS = 2**53


@dataclass
class Log:
    """A log of records by the time from which they can be read, with their arrival and cost."""

    records: list[tuple[float, int, int]] = field(default_factory=list)

    def add(self, chance: random.Random, arrived_us: int, cost: int) -> None:
        self.records.append((time() + chance.random() * LOG_SECONDS, arrived_us, cost))

    def takes_in_time(self, arrived_us: int) -> bool:
        """Returns whether a record made now can be read while the queries still cover its arrival."""
        return time() + LOG_SECONDS < arrived_us / 1_000_000 + SETTLE_SECONDS

    def spends(self, scopes: Mapping[Scope, Times]) -> dict[Scope, int]:
        now = time()
        return {
            scope: sum(
                cost
                for at, arrived, cost in self.records
                if at <= now and (arrived < times.until_us or arrived > times.beyond_us)
            )
            for scope, times in scopes.items()
        }

    @property
    def total(self) -> int:
        return sum(cost for _, _, cost in self.records)


class Worker:
    def __init__(self, own: OwnRedis) -> None:
        self.seeder = Seeder(SETTLE_SECONDS)
        self.limiter = Limiter(
            own.url,
            workers=2,
            lease_seconds=LEASE_SECONDS,
            timeout=REDIS_SECONDS,
            on_doubt=self.seeder.doubt,
            ahead_seconds=AHEAD_SECONDS,
        )
        self.seeding = asyncio.get_running_loop().create_task(self.seeder.run(self.limiter))

    async def die(self, *, killed: bool = False) -> None:
        if killed:
            # The settlements that wait, and those that are not answered, never reach Redis.
            self.limiter._redis.leave("killed")
        self.seeding.cancel()
        await asyncio.gather(self.seeding, return_exceptions=True)
        await self.limiter.close()


class Life:
    """A course of `steps` random events; requests that are open at its end are settled."""

    def __init__(self, own: OwnRedis, log: Log, chance: random.Random) -> None:
        self.own, self.log, self.chance = own, log, chance
        self.workers = [Worker(own), Worker(own)]
        self.in_flight: list[tuple[Worker, Reservation]] = []
        self.serial = 0

    async def run(self, steps: int) -> None:
        events = [self.admit, self.settle, self.stall, self.pause, self.kill, self.worker_dies, self.rest]
        for _ in range(steps):
            event = self.chance.choices(events, [50, 40, 4, 2, 1, 2, 20])[0]
            await event()
        while self.in_flight:
            await self.settle()

    async def admit(self) -> None:
        worker = self.chance.choice(self.workers)
        self.serial += 1
        # A body may arrive slowly.
        arrived_us = time_ns() // 1000 - self.chance.randint(0, 300_000)
        cost = self.chance.randint(0, MAX_UNITS)
        claim = Claim(f"r{id(self)}-{self.serial}", PROJECT, SESSION, arrived_us, 0, cost)
        admission = await worker.limiter.admit(LIMITS, claim)
        assert admission.reservation is not None
        self.in_flight.append((worker, admission.reservation))

    async def settle(self) -> None:
        if not self.in_flight:
            return
        worker, held = self.in_flight.pop(self.chance.randrange(len(self.in_flight)))
        cost = self.chance.randint(0, MAX_UNITS)
        self.log.add(self.chance, held.claim.arrived_us, cost)
        worker.limiter.settle(held, 0, cost)

    async def stall(self) -> None:
        """Holds up a worker for longer than its leases last."""
        worker = self.chance.choice(self.workers)
        worker.limiter._reservations.clear()
        await asyncio.sleep(LEASE_SECONDS)

    async def pause(self) -> None:
        self.own.service.send(signal.SIGSTOP)
        for _ in range(6):
            await self.chance.choice([self.admit, self.settle])()
        self.own.service.send(signal.SIGCONT)

    async def kill(self) -> None:
        self.own.service.stop(signal.SIGKILL)
        for _ in range(6):
            await self.chance.choice([self.admit, self.settle])()
        self.own.start()

    async def worker_dies(self) -> None:
        dead = self.workers.pop(0)
        self.workers.append(Worker(self.own))
        for worker, held in self.in_flight:
            if worker is dead:
                # The worker died after its record, or the request is recorded as interrupted with an unknown cost.
                recorded, cost = self.chance.random() < 0.5, self.chance.randint(0, MAX_UNITS)
                in_time = self.log.takes_in_time(held.claim.arrived_us)
                self.log.add(self.chance, held.claim.arrived_us, cost if recorded and in_time else 0)
        self.in_flight = [(worker, held) for worker, held in self.in_flight if worker is not dead]
        await dead.die(killed=self.chance.random() < 0.5)

    async def rest(self) -> None:
        await asyncio.sleep(self.chance.random() * 0.05)

    async def certain(self, scopes: list[Scope]) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while any(self.figures(scope)[2] for scope in scopes):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)

    def figures(self, scope: Scope) -> tuple[int, int, bool]:
        found: Any = self.own.client.hmget(scope.spend, "base", "after", "reserved", "unsure")
        base, after, reserved, unsure = found
        return int(base or 0) + int(after or 0), int(reserved or 0), unsure is not None


@pytest.mark.parametrize("seed", range(examples(1, 4)))
async def test_figure__after_any_course_of_events__is_the_logs(
    fragile_redis: OwnRedis, monkeypatch: pytest.MonkeyPatch, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="gateway.limits")
    log, chance = Log(), random.Random(seed)
    monkeypatch.setattr(seeding, "_spends", log.spends)
    # Everything that is asked for twice in a row is leased ahead.
    monkeypatch.setattr(rate, "_WINDOW_SECONDS", 0.001)
    life = Life(fragile_redis, log, chance)
    try:
        await life.run(250)
        scopes = [Scope(PROJECT, month=month_of(time_ns() // 1000)), Scope(PROJECT, session_id=SESSION)]
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not all(w.limiter.is_connected for w in life.workers):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.02)
            # A reservation that is not renewed expires with the next admission.
            while [life.figures(scope) for scope in scopes] != [(log.total, 0, False)] * 2:
                await life.admit()
                await life.settle()
                await asyncio.sleep(0.2)
                await life.certain(scopes)
        assert log.total > EXACT_UNITS
    finally:
        for worker in life.workers:
            await worker.die()
