"""Redis: its clock, and whether it keeps what it is given."""

from __future__ import annotations

from collections.abc import Iterator

import redis
from django.conf import settings

from config.deployment.problem import Problem, skew

_REDIS_SECONDS = 3


def check() -> Iterator[Problem]:
    server = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=_REDIS_SECONDS, socket_connect_timeout=_REDIS_SECONDS
    )
    try:
        seconds, microseconds = server.time()
        memory = dict(server.info("memory"))
    except (redis.RedisError, OSError) as error:
        yield Problem("redis", f"Redis does not answer ({type(error).__name__}): see REDIS_URL.")
        return
    finally:
        server.close()
    yield from skew("redis", seconds + microseconds / 1e6)
    if memory.get("maxmemory") and memory.get("maxmemory_policy") != "noeviction":
        message = (
            f"Redis drops keys when it is full ({memory['maxmemory_policy']}), budgets among them: use noeviction."
        )
        yield Problem("redis", message, is_fatal=False)
