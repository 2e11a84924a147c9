"""The open requests of rollouts that a worker lists in Redis, without a service around it."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast
from uuid import uuid4

import pytest
import redis
import redis.asyncio
from django.conf import settings

from analytics.spool.names import worker_token
from gateway.pipeline.context import RequestState
from gateway.runtime.open_requests import OpenRequests
from gateway.snapshot.prompts import PromptUse
from rollouts.open_requests.lists import (
    EXPIRY_SECONDS,
    WORKERS_EXPIRY_SECONDS,
    OpenRequest,
    key,
    open_requests,
    workers_key,
)

NOBODY = "redis://127.0.0.1:1"
# A request that has been open for this many seconds is listed.
LONG = 3600.0


@pytest.fixture
def rollout_id() -> str:
    return str(uuid4())


@pytest.fixture
def store(stores: None) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client


@pytest.fixture
async def publisher(stores: None) -> AsyncIterator[OpenRequests]:
    found = OpenRequests(settings.REDIS_URL)
    yield found
    await found.close()


def state_of(rollout_id: str, number: int, *, age: float = LONG, unit: int = 5, fallback: bool = False) -> RequestState:
    prompt = PromptUse(str(uuid4()), "support", 2, rollout_id, 3, "target", unit, fallback)
    nothing = cast(Any, None)
    started = time.perf_counter() - age
    return RequestState(f"request-{number}", number, started, nothing, nothing, nothing, prompt=prompt)


def listed(rollout_id: str, *numbers: int) -> list[OpenRequest]:
    return [OpenRequest(f"request-{number}", rollout_id, 3, "target", 5, number) for number in numbers]


async def test_publish__open_for_long_without_output__is_listed_and_nothing_else(
    publisher: OpenRequests, rollout_id: str
) -> None:
    streaming = state_of(rollout_id, 4)
    for state in (
        state_of(rollout_id, 2),
        state_of(rollout_id, 1),
        state_of(rollout_id, 3, age=0.0),
        streaming,
        state_of(rollout_id, 5, unit=0),
        state_of(rollout_id, 6, fallback=True),
        state_of(str(uuid4()), 7),
    ):
        publisher.begin(state)
    streaming.answer.first_output = time.perf_counter()

    await publisher.publish()

    assert open_requests(rollout_id) == listed(rollout_id, 1, 2)


async def test_publish__ended_requests__are_removed_and_the_keys_with_the_last(
    publisher: OpenRequests, rollout_id: str, store: redis.Redis
) -> None:
    states = [state_of(rollout_id, number) for number in (1, 2)]
    for state in states:
        publisher.begin(state)
    await publisher.publish()
    publisher.end(states[0])
    await publisher.publish()
    assert open_requests(rollout_id) == listed(rollout_id, 2)

    publisher.end(states[1])
    await publisher.publish()

    assert open_requests(rollout_id) == []
    assert store.keys(f"*{rollout_id}*") == []


async def test_publish__worker_that_stops__its_keys_expire(
    publisher: OpenRequests, rollout_id: str, store: redis.Redis
) -> None:
    publisher.begin(state_of(rollout_id, 1))
    await publisher.publish()

    assert store.smembers(workers_key(rollout_id)) == {worker_token().encode()}
    assert 0 < store.pttl(key(rollout_id, worker_token())) <= EXPIRY_SECONDS * 1000
    assert 0 < store.ttl(workers_key(rollout_id)) <= WORKERS_EXPIRY_SECONDS


async def test_close__published_requests__are_withdrawn(rollout_id: str, store: redis.Redis) -> None:
    publisher, state = OpenRequests(settings.REDIS_URL), state_of(rollout_id, 1)
    publisher.begin(state)
    await publisher.publish()
    publisher.end(state)

    await publisher.close()

    assert store.keys(f"*{rollout_id}*") == []


async def test_publish__redis_away__is_logged_once_and_only_with_requests_to_publish(
    rollout_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gateway.open_requests")
    publisher = OpenRequests(NOBODY)
    await publisher.publish()
    assert caplog.records == []

    publisher.begin(state_of(rollout_id, 1))
    for _ in range(3):
        await publisher.publish()
    await publisher.close()

    assert [record.message for record in caplog.records] == ["redis.away error=ConnectionError"]


async def test_publish__redis_back__open_requests_are_listed(
    publisher: OpenRequests, rollout_id: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "gateway.open_requests")
    publisher.begin(state_of(rollout_id, 1))
    with monkeypatch.context() as patch:
        patch.setattr(publisher, "_redis", redis.asyncio.Redis.from_url(NOBODY))
        await publisher.publish()

    await publisher.publish()

    assert open_requests(rollout_id) == listed(rollout_id, 1)
    assert [record.message for record in caplog.records] == ["redis.away error=ConnectionError", "redis.back"]
