"""The web workers' lists of open requests, as the evaluation reads them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from uuid import uuid4

import pytest
import redis
from django.conf import settings

from rollouts.open_requests.lists import (
    MAX_OPEN_REQUESTS,
    OpenRequest,
    OpenRequestReader,
    decode,
    encode,
    key,
    open_requests,
    workers_key,
)

NOBODY = "redis://127.0.0.1:1"


@pytest.fixture
def store(stores: None) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client


def made(rollout_id: str, number: int, *, variant: str = "target") -> OpenRequest:
    # The unit number is the largest one that a request can have.
    return OpenRequest(f"request-{number}", rollout_id, 2, variant, 2**64 - 1, 1_700_000_000_000_000 + number)


def store_list(store: redis.Redis, rollout_id: str, worker: str, *requests: OpenRequest) -> None:
    store.sadd(workers_key(rollout_id), worker)
    store.set(key(rollout_id, worker), encode(requests), ex=60)


def test_encode__more_than_are_kept__keeps_the_oldest_of_both_arms() -> None:
    requests = [
        made("r", number, variant=("target", "baseline")[number % 2]) for number in range(MAX_OPEN_REQUESTS + 5)
    ]

    assert decode(encode(reversed(requests))) == requests[:MAX_OPEN_REQUESTS]


def test_open_requests__of_several_workers__oldest_first_and_none_of_another_rollout(store: redis.Redis) -> None:
    rollout, other = str(uuid4()), str(uuid4())
    store_list(store, rollout, "1-a", made(rollout, 3), made(rollout, 1))
    store_list(store, rollout, "2-b", made(rollout, 2))
    store_list(store, other, "1-a", made(other, 0))

    assert open_requests(rollout) == [made(rollout, number) for number in (1, 2, 3)]


@pytest.mark.parametrize("is_read_only", [False, True])
def test_open_requests__of_a_worker_whose_list_expired__are_gone_and_it_is_forgotten_where_redis_takes_writes(
    store: redis.Redis, caplog: pytest.LogCaptureFixture, is_read_only: bool
) -> None:
    rollout = str(uuid4())
    store_list(store, rollout, "1-dead", made(rollout, 1))
    store_list(store, rollout, "2-b", made(rollout, 2))
    store.delete(key(rollout, "1-dead"))
    store.config_set("min-replicas-to-write", int(is_read_only))
    try:
        assert open_requests(rollout) == [made(rollout, 2)]
    finally:
        store.config_set("min-replicas-to-write", 0)
    assert store.smembers(workers_key(rollout)) == ({b"1-dead", b"2-b"} if is_read_only else {b"2-b"})
    assert caplog.records == []


def test_open_requests__no_lists__are_none() -> None:
    assert open_requests(uuid4()) == []


@pytest.mark.parametrize("stored", [b"", b"\xff", b'[["json"]]', b"\x91\x91\xa1a"])
def test_open_requests__one_worker_unreadable__the_others_are_read(
    store: redis.Redis, caplog: pytest.LogCaptureFixture, stored: bytes
) -> None:
    rollout = str(uuid4())
    store_list(store, rollout, "1-a", made(rollout, 1))
    store_list(store, rollout, "2-b")
    store.set(key(rollout, "2-b"), stored)

    assert open_requests(rollout) == [made(rollout, 1)]
    assert "open_requests.unreadable" in caplog.text


def test_reader__redis_away__nothing_is_open_one_line_says_so_and_it_rests(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "rollouts")
    now = 100.0
    reader = OpenRequestReader(NOBODY, clock=lambda: now)

    assert reader.read("r") == reader.read("r") == []
    now += 3600
    assert reader.read("r") == []

    assert [record.message for record in caplog.records] == ["redis.away error=ConnectionError"]


def test_reader__redis_back__is_read_again(
    store: redis.Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout, now = str(uuid4()), 100.0
    store_list(store, rollout, "1-a", made(rollout, 1))
    reader = OpenRequestReader(settings.REDIS_URL, clock=lambda: now)
    with monkeypatch.context() as patch:
        patch.setattr(reader, "_url", NOBODY)
        assert reader.read(rollout) == []

    # The reader rests for a while after a failure.
    assert reader.read(rollout) == []
    now += 60
    assert reader.read(rollout) == [made(rollout, 1)]
    assert [record.message for record in caplog.records] == ["redis.away error=ConnectionError", "redis.back"]
