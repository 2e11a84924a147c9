"""Hosts on PostgreSQL behind PgBouncer, a Redis of several servers, one engine, and HAProxy before them."""

from __future__ import annotations

import logging
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import requests
from clickhouse_driver import Client

from tests.fleet.servers import (
    HOST,
    Cluster,
    Sentinels,
    free_port,
    haproxy,
    listens,
    pgbouncer,
    redis_cluster,
    redis_sentinel,
    redis_server,
)
from tests.journeys.rows import Rows, rows_of
from tests.live.fleet import Host, Installation
from tests.night import cases
from tests.services import START_SECONDS
from tests.waiting import wait_until

POOL = 3
# By day one host is left while the other one is lost; test_beat.py has three that want to schedule.
NAMES = cases(("host-a", "host-b", "host-c"), by_day=("host-a", "host-b"))

_READY_SECONDS = 2.0

logger = logging.getLogger("tests.fleet")


@dataclass(frozen=True)
class Window:
    """The time of a loss, from before the kill until nothing of the host listened; monotonic."""

    began: float
    ended: float


class Fleet:
    def __init__(self, folder: Path, stack: ExitStack, *, cluster: bool) -> None:
        self._folder, self._stack = folder, stack
        self.is_cluster = cluster
        self.installation = Installation(folder, stack)
        self.stores = self.installation.stores
        self.pooler = stack.enter_context(pgbouncer(folder / "pooler", self.stores.database_url, pool_size=POOL))
        self.redis: Sentinels | Cluster
        if cluster:
            self.redis = stack.enter_context(redis_cluster(folder / "cluster"))
        else:
            self.redis = stack.enter_context(redis_sentinel(folder / "sentinel"))
        self._environment = {
            **self.installation.environment,
            "DATABASE_URL": self.pooler.url,
            "REDIS_URL": self.redis.url,
            # The end of an alert is waited for.
            "OPERATOR_ALERT_CLEAR_SECONDS": "5",
        }
        if cluster:
            broker = stack.enter_context(redis_server(folder / "broker"))
            self._environment["CELERY_BROKER_URL"] = broker.url
        self._ports = {name: free_port() for name in NAMES}
        self.hosts: dict[str, Host] = {}
        self.losses: list[Window] = []
        self.starts = self.own_requests = 0
        backends = [f"{HOST}:{port}" for port in self._ports.values()]
        self.balancer = stack.enter_context(haproxy(folder / "haproxy", backends=backends))
        self.key = self.project = ""

    def start(self, *names: str) -> None:
        began = time.monotonic()
        for name in names:
            own = {"HOST_NAME": name, "PORT": str(self._ports[name])}
            self.hosts[name] = host = Host(self._folder, name, {**self._environment, **own}, arguments=())
            self._stack.callback(host.kill)
        for name in names:
            wait_until(partial(self._is_ready, name), seconds=4 * START_SECONDS, what=f"{name} to be ready")
            self.hosts[name].wait()
        self.starts += len(names)
        wait_until(lambda: all(self._gets_traffic(name) for name in names), what="the balancer to know of them")
        logger.info("%s ready after %.1f s", ", ".join(names), time.monotonic() - began)
        for host in self.hosts.values():
            self.key = self.key or host.printed(r"API key +(\S+)") or ""
            self.project = self.project or host.printed(r"project id +(\S+)") or ""

    def stop(self, *names: str) -> None:
        codes = [self.hosts.pop(name).stop() for name in names]
        assert codes == [0] * len(names)

    def kill(self, name: str) -> None:
        """SIGKILL to `serve` ends all processes of the host."""
        began = time.monotonic()
        self.hosts.pop(name).kill()
        wait_until(lambda: not listens(self._ports[name]), what=f"{name} to be gone")
        self.losses.append(Window(began, time.monotonic()))

    def kill_redis_primary(self) -> None:
        """Returns when another server has taken over. The lost one is started again afterwards."""
        began = time.monotonic()
        if isinstance(self.redis, Cluster):
            lost = self.redis.primaries()[0]
            lost.kill()
            wait_until(lambda: len(self.redis.primaries()) == 3, what="a replica to take over")  # type: ignore[union-attr]
            self.redis.wait_until_whole()
        else:
            lost = self.redis.primary()
            lost.kill()
            self.redis.wait_for_primary(other_than=lost)
        logger.info("another Redis primary after %.1f s", time.monotonic() - began)
        lost.start()

    def kill_postgresql(self) -> None:
        self.stores.postgresql.stop(signal.SIGQUIT)

    def start_postgresql(self) -> None:
        self.stores.postgresql.start_again()
        wait_until(self._database_answers, what="PostgreSQL to answer")

    def scheduler(self, *, other_than: str = "") -> str | None:
        with psycopg.connect(self.stores.database_url) as connection:
            row = connection.execute("SELECT holder FROM core_lease WHERE name = 'beat'").fetchone()
        name = str(row[0]).partition(" ")[0] if row else ""
        return None if name in ("", other_than) else name

    def alert(self, kind: str, subject: str = "") -> bool:
        question = "SELECT 1 FROM gateway_operatoralert WHERE kind = %s AND subject = %s AND over_at IS NULL"
        with psycopg.connect(self.stores.database_url) as connection:
            return connection.execute(question, (kind, subject)).fetchone() is not None

    def make_key(self, **limits: int) -> tuple[str, str]:
        body = {"name": "fleet", "scopes": ["gateway"], **limits}
        made = requests.post(f"{self._any}/api/llm/keys", headers=self._manager, json=body, timeout=START_SECONDS)
        assert made.status_code == 201, made.text
        return made.json()["id"], made.json()["key"]

    def revoke(self, key_id: str) -> None:
        url = f"{self._any}/api/llm/keys/{key_id}"
        requests.delete(url, headers=self._manager, timeout=START_SECONDS).raise_for_status()

    def ask(self, name: str, key: str) -> int:
        self.own_requests += 1
        body = {"model": "openai_compatible/echo", "messages": [{"role": "user", "content": "Hello"}]}
        url = f"{self._address(name)}/api/gateway/v1/chat/completions"
        headers = {"Authorization": f"Bearer {key}", "x-svc-session-id": "fleet"}
        return requests.post(url, headers=headers, json=body, timeout=START_SECONDS).status_code

    def rows(self) -> Rows:
        with Client.from_url(self.installation.clickhouse) as client:
            return rows_of(client, self.project)

    def logs(self) -> str:
        return "\n".join(self._folder.joinpath(f"{name}.log").read_text(errors="replace") for name in NAMES)

    @property
    def _any(self) -> str:
        return self._address(next(iter(self.hosts)))

    @property
    def _manager(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "X-Project-Id": self.project}

    def _address(self, name: str) -> str:
        return f"http://{HOST}:{self._ports[name]}"

    def _database_answers(self) -> bool:
        # The pooler takes clients in while the server is away.
        try:
            with psycopg.connect(self.pooler.url) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def _is_ready(self, name: str) -> bool:
        assert not self.hosts[name].has_ended, self.hosts[name].log[-2000:]
        try:
            return requests.get(f"{self._address(name)}/readyz", timeout=_READY_SECONDS).ok
        except requests.RequestException:
            # Connections wait in the socket of `serve` until a web worker takes them.
            return False

    def _gets_traffic(self, name: str) -> bool:
        return self.balancer.status()[f"host-{NAMES.index(name) + 1}"].startswith("UP")
