"""Makes every Redis client and connection, for any kind of REDIS_URL.

A cluster's client has the methods that the product uses of a single server's client, so all are typed as the latter.
They raise `failures.REDIS_ERRORS`.
"""

from __future__ import annotations

import asyncio
import os
import random
from functools import lru_cache
from typing import Any, cast

import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.asyncio.sentinel
import redis.sentinel
from redis.asyncio.retry import Retry as BackgroundRetry
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.retry import Retry

from core.redis.address import Address, Mode, parse

# One Sentinel that hangs may not use up the time for the others.
_SHARE_OF_A_SENTINEL = 1 / 3


def shared_client(url: str, *, seconds: float) -> redis.Redis:
    """Returns this process's client for threads; do not close it. `seconds` is the longest wait for a connection and
    for an answer.

    A command is retried at once if its connection was closed or the primary moved. Making a cluster's client raises
    what its commands raise.
    """
    return _shared_client(url, seconds, os.getpid())


@lru_cache(maxsize=32)
def _shared_client(url: str, seconds: float, process: int) -> redis.Redis:
    """`process` keeps a fork from using its parent's connections."""
    return new_client(url, seconds=seconds)


def new_client(url: str, *, seconds: float) -> redis.Redis:
    address = parse(url)
    limits = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    if address.mode is Mode.SERVER:
        return redis.Redis.from_url(url, **limits, retry=retry)
    if address.mode is Mode.CLUSTER:
        nodes = [ClusterNode(host, port) for host, port in address.hosts]  # type: ignore[no-untyped-call]
        return cast(
            "redis.Redis", redis.RedisCluster(startup_nodes=nodes, **{**limits, **address.options}, retry=retry)
        )
    sentinels: Any = redis.sentinel.Sentinel(  # type: ignore[no-untyped-call]
        address.hosts, sentinel_kwargs=_of_sentinels(address, seconds), **{**limits, **address.options}
    )
    return cast("redis.Redis", sentinels.master_for(address.primary, retry=retry))


def background_client(url: str, *, connect_seconds: float, retries: int = 1) -> redis.asyncio.Redis:
    """Returns an asyncio client that connects on first use. It retries a command `retries` times, at once, if an idle
    connection was closed or the primary moved.

    Callers set a time limit around each use: redis-py's own for sending is `asyncio.wait_for`, which before Python 3.12
    sometimes loses a cancellation (https://github.com/python/cpython/issues/86296).
    """
    address = parse(url)
    limits: dict[str, Any] = {"socket_timeout": None, "socket_connect_timeout": connect_seconds}
    retry = BackgroundRetry(NoBackoff(), retries, supported_errors=(redis.ConnectionError,))
    if address.mode is Mode.SERVER:
        return redis.asyncio.Redis.from_url(url, **limits, retry=retry)
    if address.mode is Mode.CLUSTER:
        # Without steps, a node that answers MOVED does not have the connections of all commands under way closed.
        options = {**limits, **address.options, "reinitialize_steps": 0}
        return cast("redis.asyncio.Redis", _Cluster(startup_nodes=_nodes(address), **options, retry=retry))
    sentinels = _sentinels(address, connect_seconds)
    client: redis.asyncio.Redis = sentinels.master_for(address.primary, **{**limits, **address.options}, retry=retry)
    return client


class Primary:
    def __init__(self, url: str, *, connect_seconds: float) -> None:
        self._address = parse(url)
        options: dict[str, Any] = {"protocol": 2, "socket_connect_timeout": None, "socket_timeout": None, "retry": None}
        self._sentinels: redis.asyncio.sentinel.Sentinel | None = None
        self._pool: redis.asyncio.ConnectionPool
        if self._address.mode is Mode.SENTINEL:
            self._sentinels = _sentinels(self._address, connect_seconds)
            self._pool = redis.asyncio.sentinel.SentinelConnectionPool(  # type: ignore[no-untyped-call]
                self._address.primary, self._sentinels, **{**self._address.options, **options}
            )
        else:
            self._pool = redis.asyncio.ConnectionPool.from_url(url, **options)

    def new_connection(self) -> Any:
        return self._pool.make_connection()  # type: ignore[no-untyped-call]

    async def has_moved(self, connection: Any) -> bool:
        if self._sentinels is None:
            return False
        found = await self._sentinels.discover_master(self._address.primary)
        return tuple(found) != (connection.host, connection.port)

    async def close(self) -> None:
        await self._pool.aclose()


def node_connection(url: str, host: str, port: int) -> Any:
    options = dict(parse(url).options)
    options.pop("max_connections", None)
    kind = redis.asyncio.SSLConnection if options.pop("ssl") else redis.asyncio.Connection
    return kind(**{**options, "host": host, "port": port, "protocol": 2, "socket_connect_timeout": None})


def is_cluster(client: object) -> bool:
    return isinstance(client, redis.RedisCluster | redis.asyncio.RedisCluster)


def subscriber_node(client: Any) -> dict[str, Any]:
    """Returns `pubsub` options for a random node: every node of a cluster passes on messages, and subscribers would
    otherwise all use one."""
    if is_cluster(client):
        return {"node": random.choice(client.get_primaries())}  # noqa: S311 - no secret
    return {}


def run_id_of(client: redis.Redis, key: str) -> str:
    of_any_kind: Any = client
    node = {"target_nodes": of_any_kind.get_node_from_key(key)} if is_cluster(client) else {}
    info: dict[str, Any] = of_any_kind.info("server", **node)
    return str(info.get("run_id", ""))


def _nodes(address: Address) -> list[redis.asyncio.cluster.ClusterNode]:
    return [redis.asyncio.cluster.ClusterNode(host, port) for host, port in address.hosts]


def _of_sentinels(address: Address, seconds: float) -> dict[str, Any]:
    share = seconds * _SHARE_OF_A_SENTINEL
    return {**address.sentinel_options, "socket_timeout": share, "socket_connect_timeout": share}


def _sentinels(address: Address, seconds: float) -> redis.asyncio.sentinel.Sentinel:
    options = _of_sentinels(address, seconds)
    return _BriefSentinel(address.hosts, sentinel_kwargs=options)


class _Cluster(redis.asyncio.RedisCluster):
    """Knows its nodes before the first command: redis-py sends earlier commands to any node."""

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        await self.initialize()
        return await super().execute_command(*args, **kwargs)


class _BriefSentinel(redis.asyncio.sentinel.Sentinel):
    """Keeps no connection to a Sentinel. Callers ask one at a time, because each closes all connections when it
    ends.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]
        self._asking = asyncio.Lock()

    async def discover_master(self, service_name: str) -> Any:
        async with self._asking:
            try:
                return await super().discover_master(service_name)
            finally:
                await self.aclose()
