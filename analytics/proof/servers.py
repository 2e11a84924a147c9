from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from analytics.clickhouse import client
from analytics.clickhouse.address import at, database, resolve_url
from analytics.clickhouse.engine.rights import SCRATCH
from analytics.clickhouse.topology.mode import Kind, mode
from analytics.errors import AnalyticsQueryError

_UNKNOWN_DATABASE = 81
_HOST_AND_PORT = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:]+\]):\d{1,5}")
_LISTED = "SELECT DISTINCT host_name, port FROM system.clusters WHERE cluster = {cluster:String} ORDER BY ALL"


class NoServerError(Exception):
    pass


@dataclass(frozen=True)
class Server:
    name: str
    url: str


@dataclass(frozen=True)
class _Listed:
    host_name: str
    port: int


def find_servers(named: Sequence[str]) -> list[Server]:
    """Returns the servers `named` as `host:port`, else those that the store itself lists.

    A single server, like ClickHouse Cloud's single address, counts as two, each with its own connections. Raises
    NoServerError, and the errors of the store.
    """
    if named:
        return [_server(name) for name in named]
    if mode().kind in (Kind.SINGLE, Kind.CLOUD):
        return [Server("first connection", resolve_url()), Server("second connection", resolve_url())]
    found = client.query(_LISTED, {"cluster": mode().cluster(database())}, row=_Listed, name="proof.servers")
    return [_server(f"{one.host_name}:{one.port}") for one in found]


def _server(name: str) -> Server:
    if not _HOST_AND_PORT.fullmatch(name):
        raise NoServerError(f"--server {name}: expected HOST:PORT, such as ch-1.example.com:9000.")
    parts = urlsplit(resolve_url())
    credentials = parts.netloc.rpartition("@")
    return Server(name, urlunsplit(parts._replace(netloc="".join((*credentials[:2], name)))))


@contextmanager
def scratch_database(servers: Sequence[Server]) -> Iterator[list[Server]]:
    name = f"{database()}{SCRATCH}{secrets.token_hex(4)}"
    try:
        _everywhere(servers, f"CREATE DATABASE IF NOT EXISTS {name}")
        yield [Server(one.name, urlunsplit(urlsplit(one.url)._replace(path=f"/{name}"))) for one in servers]
    finally:
        _everywhere(servers, f"DROP DATABASE IF EXISTS {name} SYNC")
        # The connections belong to a database that is gone.
        client.close()


def _everywhere(servers: Sequence[Server], sql: str) -> None:
    """Runs on each server that has to join the database by itself, else on the first only."""
    for server in servers if mode().kind is Kind.REPLICATED else servers[:1]:
        try:
            with at(server.url):
                client.execute(sql)
        except AnalyticsQueryError as error:
            if error.server_code != _UNKNOWN_DATABASE:
                raise
            # The installation has no database yet.
            with at(urlunsplit(urlsplit(server.url)._replace(path="/default"))):
                client.execute(sql)
