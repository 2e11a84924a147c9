from __future__ import annotations

from collections.abc import Callable

from core.redis.address import Mode, parse
from gateway.limits.cluster import ClusterConnection
from gateway.limits.connection import Connection
from gateway.limits.server import PrimaryConnection


def connect(url: str, *, timeout: float, on_return: Callable[[], None]) -> Connection:
    """Returns a connection that is made in the running event loop and remade whenever it is lost.

    After `timeout` seconds without an answer Redis counts as down. `on_return` is called after each connect, including
    the first; in a cluster, for each primary.
    """
    if parse(url).mode is Mode.CLUSTER:
        return ClusterConnection(url, timeout=timeout, on_return=on_return)
    return PrimaryConnection(url, timeout=timeout, on_return=on_return)
