"""The requests in traces of applications of which a worker tells Redis, without a service around it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
import redis
from django.conf import settings

from gateway.project_settings.settings import ProjectSettings
from gateway.runtime.traced_requests import EXPIRY_SECONDS, TracedRequests, traced_requests
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt, RunningRollout
from rollouts.allocation import AllocationType
from tests.gateway.prompted import PROJECT, ROLLOUT, a_version
from tests.waiting import eventually

TRACE, OTHER = "0af7651916cd43dd8448eb211c80319c", "1" * 32


def header(trace_id: str) -> str:
    return f"00-{trace_id}-b7ad6b7169203331-01"


@pytest.fixture
def client(stores: None) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.REDIS_URL) as connected:
        yield connected


@pytest.fixture
async def traced(stores: None) -> AsyncIterator[TracedRequests]:
    made = TracedRequests(settings.REDIS_URL)
    yield made
    await made.close()


async def test_requests__that_begin_in_traces__are_told_by_project_and_trace(
    traced: TracedRequests, client: redis.Redis
) -> None:
    project, foreign = str(uuid4()), str(uuid4())
    for number in range(3):
        traced.begin(project, header(TRACE), number)
    traced.begin(project, "no traceparent", 7)
    traced.begin(foreign, header(OTHER), 8)

    await traced.close()

    found = traced_requests(client, project, [TRACE, OTHER])
    assert {trace_id: sorted(times) for trace_id, times in found.items()} == {TRACE: [0, 1, 2], OTHER: []}
    assert traced_requests(client, foreign, [OTHER]) == {OTHER: [8]}
    assert 0 < int(client.ttl(f"svc:traced:{{{project}}}:{TRACE}")) <= EXPIRY_SECONDS


async def test_requests__of_one_trace_without_end__keep_the_newest(traced: TracedRequests, client: redis.Redis) -> None:
    project = str(uuid4())
    for number in range(1100):
        traced.begin(project, header(TRACE), number)

    await traced.close()

    assert sorted(traced_requests(client, project, [TRACE])[TRACE]) == list(range(100, 1100))


async def test_redis_away__requests_go_on_and_the_log_says_it_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "gateway.traced_requests")
    traced = TracedRequests("redis://127.0.0.1:1")
    for number in range(2):
        traced.begin(str(uuid4()), header(TRACE), number)
        await eventually(lambda: traced.is_idle)

    await traced.close()

    assert [record.getMessage().split()[0] for record in caplog.records] == ["redis.away"]


def test_project__with_a_rollout_or_without__says_so() -> None:
    plain = ManagedPrompt("c-1", "support", a_version("Old."), last_version=2)
    stages = (AllocationType.USER_STICKY, False, a_version("Old."), a_version("New."))
    rolled_out = replace(plain, rollout=RunningRollout(ROLLOUT, 1, 50, *stages))

    def snapshot(prompt: ManagedPrompt) -> ProjectSnapshot:
        return ProjectSnapshot(PROJECT, str(PROJECT), {}, {}, {}, ProjectSettings(), 1, {"support": prompt})

    assert not snapshot(plain).has_rollouts
    assert snapshot(rolled_out).has_rollouts
