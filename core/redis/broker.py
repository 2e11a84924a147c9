"""The address of a Redis in the words of Celery's transport, kombu (https://docs.celeryq.dev, "Using Redis")."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from core.redis.address import Address, Mode, parse

# Celery waits for a message for a second at a time; a server that is silent for longer than this hangs.
_ANSWER_SECONDS, _CONNECT_SECONDS = 15.0, 5.0
_VERIFICATION = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class Broker:
    url: str
    transport_options: Mapping[str, Any] = field(default_factory=dict)
    use_ssl: Mapping[str, Any] | None = None


def check_broker(url: str) -> None:
    if parse(url).mode is Mode.CLUSTER:
        raise ValueError("expected a Redis that is no cluster, because Celery cannot use one")


def broker(url: str) -> Broker:
    address = parse(url)
    if "path" in address.options:
        # The socket's database is named by another option there.
        return Broker(url.replace("unix://", "redis+socket://", 1).replace("db=", "virtual_host="))
    options: dict[str, Any] = {"socket_timeout": _ANSWER_SECONDS, "socket_connect_timeout": _CONNECT_SECONDS}
    use_ssl = _tls(address.options) if address.tls else None
    database = address.options.get("db", 0)
    if address.mode is Mode.SERVER:
        own = urlsplit(url)._replace(path=f"/{database}", query="", fragment="").geturl()
        return Broker(own, options, use_ssl)
    options |= {"master_name": address.primary, "sentinel_kwargs": {**address.sentinel_options, **options}}
    return Broker(_sentinels(address, database), options, use_ssl)


def _sentinels(address: Address, database: int) -> str:
    user, at, _ = urlsplit(address.url).netloc.rpartition("@")
    hosts = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in address.hosts)
    return ";".join(f"sentinel://{user}{at}{host}/{database}" for host in hosts)


def _tls(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without any TLS options, kombu would trust every certificate."""
    given = {name: value for name, value in options.items() if name.startswith("ssl_")}
    return {**given, "ssl_cert_reqs": _VERIFICATION[given.get("ssl_cert_reqs", "required")]}
