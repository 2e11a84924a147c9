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
from gateway.open_requests import OpenRequests
from gateway.pipeline.context import RequestState
from gateway.snapshot.prompts import PromptUse
from rollouts.open_requests import EXPIRY_SECONDS, WORKERS_EXPIRY_SECONDS, OpenRequest, key, open_requests, workers_key

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
async def teller(stores: None) -> AsyncIterator[OpenRequests]:
    found = OpenRequests(settings.REDIS_URL)
    yield found
    await found.close()


def state_of(rollout_id: str, number: int, *, age: float = LONG, unit: int = 5, fallback: bool = False) -> RequestState:
    prompt = PromptUse(str(uuid4()), "support", 2, rollout_id, 3, "target", unit, fallback)
    nothing = cast(Any, None)
    started = time.perf_counter() - age
    return RequestState(f"request-{number}", number, started, nothing, nothing, nothing, prompt=prompt)


def told(rollout_id: str, *numbers: int) -> list[OpenRequest]:
    return [OpenRequest(f"request-{number}", rollout_id, 3, "target", 5, number) for number in numbers]


async def test_tell__open_for_long_without_output__is_told_and_nothing_else(
    teller: OpenRequests, rollout_id: str
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
        teller.begin(state)
    streaming.answer.first_output = time.perf_counter()

    await teller.publish()

    assert open_requests(rollout_id) == told(rollout_id, 1, 2)


async def test_tell__ended_ones__are_told_no_more_and_the_last_takes_its_keys_along(
    teller: OpenRequests, rollout_id: str, store: redis.Redis
) -> None:
    states = [state_of(rollout_id, number) for number in (1, 2)]
    for state in states:
        teller.begin(state)
    await teller.publish()
    teller.end(states[0])
    await teller.publish()
    assert open_requests(rollout_id) == told(rollout_id, 2)

    teller.end(states[1])
    await teller.publish()

    assert open_requests(rollout_id) == []
    assert store.keys(f"*{rollout_id}*") == []


async def test_tell__worker_that_says_no_more__its_keys_expire(
    teller: OpenRequests, rollout_id: str, store: redis.Redis
) -> None:
    teller.begin(state_of(rollout_id, 1))
    await teller.publish()

    assert store.smembers(workers_key(rollout_id)) == {worker_token().encode()}
    assert 0 < store.pttl(key(rollout_id, worker_token())) <= EXPIRY_SECONDS * 1000
    assert 0 < store.ttl(workers_key(rollout_id)) <= WORKERS_EXPIRY_SECONDS


async def test_close__what_was_told__is_withdrawn(rollout_id: str, store: redis.Redis) -> None:
    teller, state = OpenRequests(settings.REDIS_URL), state_of(rollout_id, 1)
    teller.begin(state)
    await teller.publish()
    teller.end(state)

    await teller.close()

    assert store.keys(f"*{rollout_id}*") == []


async def test_tell__redis_away__one_line_says_so_and_none_while_nothing_is_to_be_told(
    rollout_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gateway.open_requests")
    teller = OpenRequests(NOBODY)
    await teller.publish()
    assert caplog.records == []

    teller.begin(state_of(rollout_id, 1))
    for _ in range(3):
        await teller.publish()
    await teller.close()

    assert [record.message for record in caplog.records] == ["redis.away error=ConnectionError"]


async def test_tell__redis_back__what_is_open_then_is_told(
    teller: OpenRequests, rollout_id: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "gateway.open_requests")
    teller.begin(state_of(rollout_id, 1))
    with monkeypatch.context() as patch:
        patch.setattr(teller, "_redis", redis.asyncio.Redis.from_url(NOBODY))
        await teller.publish()

    await teller.publish()

    assert open_requests(rollout_id) == told(rollout_id, 1)
    assert [record.message for record in caplog.records] == ["redis.away error=ConnectionError", "redis.back"]
