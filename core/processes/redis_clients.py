"""The asyncio client of Redis for work in the background of a worker."""

from __future__ import annotations

import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def background_client(url: str, *, connect_seconds: float, retries: int = 1) -> redis.asyncio.Redis:
    """Returns a client that connects on first use. A command is retried `retries` times, at once, for a connection that
    was closed while idle.

    Callers set a time limit around each use: redis-py's own for sending is `asyncio.wait_for`, which before Python 3.12
    sometimes loses a cancellation (https://github.com/python/cpython/issues/86296).
    """
    return redis.asyncio.Redis.from_url(
        url,
        socket_timeout=None,
        socket_connect_timeout=connect_seconds,
        retry=Retry(NoBackoff(), retries, supported_errors=(redis.ConnectionError,)),
    )
