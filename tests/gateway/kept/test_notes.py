"""The notes of what answers have given out, without a service around them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
import redis
from django.conf import settings
from redis.exceptions import ConnectionError as RedisGoneError

from gateway.runtime import kept_ids
from gateway.runtime.kept_ids import KeptIds
from integrations.providers.given import Kept
from tests.waiting import eventually

_DAY = 86_400
_RESPONSE, _ITEM = (Kept.RESPONSE, "id_1"), (Kept.ITEM, "id_1")


@pytest.fixture
async def notes(stores: None) -> AsyncIterator[KeptIds]:
    made = KeptIds(settings.REDIS_URL)
    yield made
    await made.close()


@pytest.fixture
def client(stores: None) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.REDIS_URL) as connected:
        yield connected


async def test_note__of_a_project_and_an_integration__is_found_for_them_alone(notes: KeptIds) -> None:
    project, foreign = str(uuid4()), str(uuid4())
    notes.note(project, 7, [_RESPONSE])
    notes.note(foreign, None, [_ITEM])

    # At once, and from Redis.
    assert await notes.keepers(project, {_RESPONSE, _ITEM}) == {_RESPONSE: {7}}
    await eventually(lambda: notes.is_idle)
    assert await notes.keepers(project, {_RESPONSE, _ITEM}) == {_RESPONSE: {7}}
    assert await notes.keepers(foreign, {_RESPONSE, _ITEM}) == {_ITEM: {None}}


async def test_note__of_another_worker_that_is_under_way__is_waited_for(notes: KeptIds) -> None:
    other = KeptIds(settings.REDIS_URL)
    other.note(project := str(uuid4()), None, [_RESPONSE])

    assert await notes.keepers(project, {_RESPONSE}) == {_RESPONSE: {None}}
    await other.close()


@pytest.mark.parametrize(("days", "is_found"), [(1, True), (2, True), (31, True), (32, False)])
async def test_note__of_some_days_ago__is_found_for_as_long_as_the_vendor_keeps_it(
    notes: KeptIds, monkeypatch: pytest.MonkeyPatch, *, days: int, is_found: bool
) -> None:
    project, today = str(uuid4()), kept_ids._today()
    monkeypatch.setattr(kept_ids, "_today", lambda: today - days)
    notes.note(project, 7, [_RESPONSE])
    await eventually(lambda: notes.is_idle)
    monkeypatch.setattr(kept_ids, "_today", lambda: today)

    assert bool(await notes.keepers(project, {_RESPONSE})) is is_found


async def test_notes__of_a_project__expire_and_hold_no_id(notes: KeptIds, client: redis.Redis) -> None:
    notes.note(project := str(uuid4()), 7, [(Kept.RESPONSE, f"resp_{number}") for number in range(100)])

    await eventually(lambda: notes.is_idle)

    (key,) = client.scan_iter(f"svc:kept:{{{project}}}:*", count=10_000)
    assert 31 * _DAY < int(client.ttl(key)) <= 32 * _DAY
    assert client.hlen(key) == 100
    assert {len(field) for field in client.hkeys(key)} == {8}


async def test_redis_away__the_log_says_it_once_and_what_is_named_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "gateway.kept_ids")
    notes = KeptIds("redis://127.0.0.1:1")
    for number in range(2):
        notes.note(str(uuid4()), 7, [(Kept.RESPONSE, f"resp_{number}")])
        await eventually(lambda: notes.is_idle)

    with pytest.raises(RedisGoneError):
        await notes.keepers(str(uuid4()), {_RESPONSE})
    await notes.close()

    assert [record.getMessage() for record in caplog.records] == ["redis.away error=ConnectionError"]


async def test_redis_back__the_log_says_how_many_ids_were_lost(
    notes: KeptIds, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gateway.kept_ids")

    async def refuse(_: object) -> None:
        raise redis.ResponseError("OOM command not allowed")

    with monkeypatch.context() as broken:
        broken.setattr(notes, "_write", refuse)
        notes.note(str(uuid4()), 7, [_RESPONSE, _ITEM])
        await eventually(lambda: notes.is_idle)
    notes.note(str(uuid4()), 7, [_RESPONSE])
    await eventually(lambda: notes.is_idle)

    assert [record.getMessage() for record in caplog.records] == [
        "redis.away error=ResponseError",
        "redis.back lost_ids=2",
    ]
