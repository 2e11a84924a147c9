"""Several limiters that share one Redis, as those of workers do."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import time_ns
from typing import Any

from gateway.limits.claims import Admission, Claim
from gateway.limits.keys import Scope, month_of
from gateway.limits.limiter import Limiter
from gateway.project_settings.limits import ProjectLimits
from tests.gateway.limits.conftest import OwnRedis
from tests.waiting import TIMEOUT_SECONDS, eventually

PROJECT = "018f0000-0000-7000-8000-000000000002"
DOLLAR = 10**10
WORKERS = 2
# After these seconds a paused Redis counts as away; a killed one closes the connection at once.
SOON_SECONDS = 3.0


def now_us() -> int:
    return time_ns() // 1000


@dataclass
class Worker:
    """A limiter with the calls that a request makes of it."""

    limiter: Limiter
    doubts: list[Scope]
    limits: ProjectLimits
    serial: int = 0
    arrived_us: int = field(default_factory=now_us)

    def claim(self, *, tokens: int = 0, cost: int = 0, session: str = "") -> Claim:
        self.serial += 1
        return Claim(f"r{id(self)}-{self.serial}", PROJECT, session, self.arrived_us + self.serial, tokens, cost)

    async def ask(self, **claim: Any) -> Admission:
        return await self.limiter.admit(self.limits, self.claim(**claim))

    @property
    def month(self) -> Scope:
        return Scope(PROJECT, month=month_of(self.arrived_us))


def new_limiter(
    own: OwnRedis, workers: int, lease: float, doubts: list[Scope], timeout: float = TIMEOUT_SECONDS, ahead: float = 0.0
) -> Limiter:
    """Returns a limiter that does not take a slow Redis on a busy machine for away. It leases nothing `ahead`, so that
    each request can be followed in Redis."""
    return Limiter(
        own.url,
        workers=workers,
        lease_seconds=lease,
        timeout=timeout,
        ahead_seconds=ahead,
        on_doubt=lambda scope, _: doubts.append(scope),
    )


@asynccontextmanager
async def worker(
    own: OwnRedis,
    *,
    lease: float = 60.0,
    redis_timeout: float = TIMEOUT_SECONDS,
    ahead: float = 0.0,
    **limits: Any,
) -> Any:
    doubts: list[Scope] = []
    limiter = new_limiter(own, WORKERS, lease, doubts, redis_timeout, ahead)
    await eventually(lambda: limiter.is_connected)
    try:
        yield Worker(limiter, doubts, ProjectLimits(**limits))
    finally:
        await limiter.close()


def spent(own: OwnRedis, scope: Scope) -> tuple[int, int]:
    found: Any = own.client.hmget(scope.spend, "base", "after", "reserved")
    base, after, reserved = (int(value or 0) for value in found)
    return base + after, reserved
