"""What a web worker wants of Redis, without the worker: limits, health, cache, announcements, open requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from time import time_ns
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from django.test import override_settings

from gateway.cache.store import ResponseCache
from gateway.limits.claims import Claim
from gateway.limits.limiter import Limiter
from gateway.project_settings.limits import ProjectLimits
from gateway.snapshot import announcements
from gateway.snapshot.announcements import Follower
from gateway.snapshot.store import SnapshotStore
from integrations.health import store
from integrations.health.monitor import HealthMonitor
from tests.integrations.health.workers import following
from tests.waiting import TIMEOUT_SECONDS, eventually

_serials = count(1)


@dataclass
class Changes:
    projects: list[UUID] = field(default_factory=list)
    everything: int = 0

    async def refresh_project(self, project_id: UUID) -> None:
        self.projects.append(project_id)

    async def refresh_all(self) -> None:
        self.everything += 1


@dataclass
class Uses:
    limiter: Limiter
    health: HealthMonitor
    cache: ResponseCache
    changes: Changes

    async def admit(self, project: str, limits: ProjectLimits, *, cost: int = 0) -> str:
        claim = Claim(f"request-{next(_serials)}", project, "", time_ns() // 1000, 0, cost)
        admission = await self.limiter.admit(limits, claim)
        if admission.reservation is not None:
            self.limiter.settle(admission.reservation, 0, cost)
        return admission.refused_by


@asynccontextmanager
async def uses(url: str) -> AsyncIterator[Uses]:
    """A Redis that is slow on a busy machine does not count as away."""
    async with AsyncExitStack() as stack:
        stack.enter_context(override_settings(REDIS_URL=url))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(store, "ANSWER_SECONDS", TIMEOUT_SECONDS)
        patch.setattr(announcements, "_ANSWER_SECONDS", TIMEOUT_SECONDS)
        limiter = Limiter(
            url,
            workers=2,
            lease_seconds=60.0,
            timeout=TIMEOUT_SECONDS,
            on_doubt=lambda scope, since: None,
            ahead_seconds=0.1,
        )
        stack.push_async_callback(limiter.close)
        cache = ResponseCache(url, max_bytes=1000, timeout=TIMEOUT_SECONDS)
        stack.push_async_callback(cache.close)
        health = await stack.enter_async_context(following(HealthMonitor(url)))
        changes = Changes()
        follower = asyncio.create_task(Follower(cast("SnapshotStore", changes)).follow_projects())
        stack.push_async_callback(_cancelled, follower)
        await eventually(lambda: limiter.is_connected and health.connected and changes.everything > 0)
        yield Uses(limiter, health, cache, changes)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


def projects(number: int) -> list[str]:
    return [str(uuid4()) for _ in range(number)]
