"""The cache's commands to Redis, without a service around it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import redis

from gateway.cache.store import _CONNECTIONS, CachedAnswer, ResponseCache
from tests.services import start_redis
from tests.waiting import TIMEOUT_SECONDS

CROWD = 600


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    service, url = start_redis(tmp_path_factory.mktemp("cache") / "redis")
    yield url
    service.stop()


async def test_crowd__waits_its_turn_and_redis_is_not_taken_for_away(redis_url: str) -> None:
    cache = ResponseCache(redis_url, max_bytes=1000, timeout=TIMEOUT_SECONDS)
    now = 2_000_000_000.0
    for number in range(100):
        cache.put(f"svc:cache:crowd:{number}", CachedAnswer("p", "m", "stop", now, b"%d" % number), 60)
    await asyncio.gather(*cache._puts)

    found = await asyncio.gather(*(cache.get(f"svc:cache:crowd:{n % 100}", max_age=60) for n in range(CROWD)))

    assert [answer.content for answer in found if answer is not None] == [b"%d" % (n % 100) for n in range(CROWD)]
    with redis.Redis.from_url(redis_url) as client:
        # The count includes its own connection and the one that started the test's server.
        assert client.info("stats")["total_connections_received"] <= _CONNECTIONS + 2
    await cache.close()
