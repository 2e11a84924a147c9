"""Connects the limiter to the Redis that an address names."""

from __future__ import annotations

from collections.abc import Callable

from core.redis.address import Mode, parse
from gateway.limits.cluster import ClusterConnection
from gateway.limits.connection import Connection
from gateway.limits.server import PrimaryConnection


def connect(url: str, *, timeout: float, on_return: Callable[[], None]) -> Connection:
    """Returns a connection that is made within the running loop and again whenever it is lost. `timeout` is the number
    of seconds without an answer after which Redis counts as away; `on_return` is called after each connect, the first
    included, and in a cluster for each of its primaries."""
    if parse(url).mode is Mode.CLUSTER:
        return ClusterConnection(url, timeout=timeout, on_return=on_return)
    return PrimaryConnection(url, timeout=timeout, on_return=on_return)
