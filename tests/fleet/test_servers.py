from __future__ import annotations

import http.server
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
import requests
from redis.cluster import RedisCluster

from tests.fleet import servers
from tests.fleet.servers import HOST, haproxy, pgbouncer, redis_cluster, redis_sentinel, redis_server
from tests.services import ServiceError, start_postgresql
from tests.waiting import wait_until


def test_binary__program_that_is_nowhere__is_named_with_the_command_that_brings_it() -> None:
    with pytest.raises(ServiceError, match="memcached-of-nobody is missing: run `make servers`"):
        servers.binary("memcached-of-nobody")


def test_redis_server__option__is_the_server_s(folder: Path) -> None:
    with redis_server(folder / "redis", "--maxmemory", "10mb") as server, server.client() as client:
        assert client.config_get("maxmemory") == {"maxmemory": str(10 << 20)}


def test_redis_sentinel__primary_is_killed__replica_takes_writes(folder: Path) -> None:
    with redis_sentinel(folder / "redis") as group:
        former = group.primary()
        former.kill()

        chosen = group.wait_for_primary(other_than=former)

        with chosen.client() as client:
            assert client.set("name", "value")


def test_redis_cluster__primary_is_killed__its_slots_move_to_its_replica(folder: Path) -> None:
    with redis_cluster(folder / "redis") as cluster:
        lost = cluster.primaries()[0]
        other = next(node for node in cluster.nodes if node is not lost)
        lost.kill()
        wait_until(lambda: len(cluster.primaries()) == 3 or None, what="a replica to take over")
        cluster.wait_until_whole()

        with RedisCluster(host=HOST, port=other.port) as client:
            assert all(client.set(f"name-{number}", number) for number in range(50))


def test_redis_server__killed_and_started__has_its_address(folder: Path) -> None:
    with redis_server(folder / "redis") as server:
        server.kill()
        with pytest.raises(redis.ConnectionError):
            server.client().ping()
        server.start()

        assert server.client().ping()


def test_pgbouncer__more_clients_than_its_pool__share_its_connections(folder: Path) -> None:
    with ExitStack() as stack:
        postgresql, url = start_postgresql(folder / "pg")
        stack.callback(postgresql.stop, signal.SIGINT)
        pooler = stack.enter_context(pgbouncer(folder / "pooler", url, pool_size=3))
        clients = [stack.enter_context(psycopg.connect(pooler.url, autocommit=True)) for _ in range(20)]

        backends = {client.execute("SELECT pg_backend_pid()").fetchone() for client in clients}

        assert len(backends) <= 3


def test_haproxy__host_that_is_not_ready__gets_no_request(folder: Path) -> None:
    with ExitStack() as stack:
        one, _ = stack.enter_context(_host("one"))
        two, is_ready = stack.enter_context(_host("two"))
        balancer = stack.enter_context(haproxy(folder / "haproxy", backends=[one, two]))
        wait_until(lambda: set(balancer.status().values()) == {"UP"} or None, what="both hosts to be up")
        first = {requests.get(balancer.url, timeout=5).text for _ in range(6)}
        is_ready.clear()
        wait_until(lambda: balancer.status()["host-2"] == "DOWN" or None, what="the second to be down")

        assert first == {"one", "two"}
        assert {requests.get(balancer.url, timeout=5).text for _ in range(6)} == {"one"}


@contextmanager
def _host(name: str) -> Iterator[tuple[str, threading.Event]]:
    is_ready = threading.Event()
    is_ready.set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503 if self.path == "/readyz" and not is_ready.is_set() else 200)
            self.end_headers()
            self.wfile.write(name.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the balancer asks each second."""

    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{HOST}:{server.server_address[1]}", is_ready
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
