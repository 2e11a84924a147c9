"""The address of a Redis: one server, the Sentinels that know its primary, or some nodes of a cluster.

    redis://[user:password@]host[:6379][/db]         rediss:// with TLS, unix:///path/to/redis.sock
    redis+sentinel://[user:password@]host[:26379][,host...]/name[/db]      rediss+sentinel:// with TLS
    redis+cluster://[user:password@]host[:6379][,host...]                  rediss+cluster:// with TLS

The query has redis-py's options (`ssl_ca_certs=/path`), and `sentinel_username` and `sentinel_password`: Sentinels have
users of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import redis
from redis.connection import parse_url

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
_SENTINEL_PORT, _PORT = 26379, 6379
_OF_SENTINELS = {"sentinel_username": "username", "sentinel_password": "password"}
# Options of a pool, which its connections do not take.
_OF_POOLS = frozenset({"max_connections", "timeout"})
_HOSTS = "expected hosts as host or host:port, with commas between them"


class Mode(StrEnum):
    SERVER = "server"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Address:
    """`hosts` are Sentinels or nodes of a cluster, empty for one server; `primary` is the name by which Sentinels know
    it.

    `options` and `sentinel_options` are redis-py's for connections, without hosts; both have `ssl`.
    """

    url: str
    mode: Mode
    hosts: tuple[tuple[str, int], ...]
    primary: str
    options: Mapping[str, Any]
    sentinel_options: Mapping[str, Any]

    @property
    def tls(self) -> bool:
        return bool(self.options["ssl"])


@lru_cache(maxsize=16)
def parse(url: str) -> Address:
    """Raises ValueError whose message quotes nothing of the URL, which may hold a password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(_HOSTS) from None
    if parts.scheme not in SCHEMES:
        raise ValueError(f"expected an address that starts with {', '.join(f'{scheme}:' for scheme in SCHEMES)}")
    kind, _, mode = parts.scheme.partition("+")
    query = dict(parse_qsl(parts.query))
    for_sentinels = {_OF_SENTINELS[name]: query.pop(name) for name in _OF_SENTINELS if name in query}
    if not mode:
        options = _options(url, kind)
        return Address(url, Mode.SERVER, (), "", options, {})
    user, _, listed = parts.netloc.rpartition("@")
    path = [part for part in parts.path.split("/") if part]
    primary = _primary(path) if mode == Mode.SENTINEL else ""
    if mode == Mode.CLUSTER and path not in ([], ["0"]):
        raise ValueError("expected no database behind the hosts: a cluster has none but 0")
    if for_sentinels and mode == Mode.CLUSTER:
        raise ValueError("expected sentinel_username and sentinel_password with +sentinel only")
    hosts = tuple(_host(one, _SENTINEL_PORT if mode == Mode.SENTINEL else _PORT) for one in listed.split(","))
    login = f"{user}@" if user else ""
    options = _options(f"{kind}://{login}host/{''.join(path[1:])}?{urlencode(query)}", kind)
    tls = {name: value for name, value in options.items() if name.startswith("ssl")}
    return Address(url, Mode(mode), hosts, primary, options, {**tls, **for_sentinels})


def _primary(path: list[str]) -> str:
    if not path or len(path) > 2 or not all(part.isdecimal() for part in path[1:]):
        raise ValueError("expected /name or /name/db behind the Sentinels: the name by which they know the primary")
    return path[0]


def _host(text: str, default: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        found = parts.hostname, parts.port or default
    except ValueError:
        raise ValueError(_HOSTS) from None
    if not found[0] or parts.path or parts.username is not None:
        raise ValueError(_HOSTS)
    return found[0], found[1]


def _options(url: str, kind: str) -> Mapping[str, Any]:
    parts = urlsplit(url)
    try:
        is_one = parts.port is None or bool(parts.hostname)
    except ValueError:
        is_one = False
    if not is_one or "," in parts.netloc.rpartition("@")[2]:
        raise ValueError("expected an address of one host, with a port from 0 to 65535 or none")
    if kind != "rediss" and "ssl_" in parts.query:
        raise ValueError("expected rediss: where the query has options of TLS")
    try:
        options: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]
        made_by = options.pop("connection_class", redis.Connection)
        made_by(**{name: value for name, value in options.items() if name not in _OF_POOLS})
    except (TypeError, ValueError, redis.RedisError):
        raise ValueError("expected a query of redis-py's options, such as ssl_ca_certs") from None
    for name in ("host", "port"):
        options.pop(name, None)
    return {**options, "ssl": kind == "rediss"}
