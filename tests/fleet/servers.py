"""The servers of a fleet: Redis with replicas, Sentinel and Cluster, PgBouncer and HAProxy.

    with redis_sentinel(folder / "redis") as redis, pgbouncer(folder / "pooler", database_url) as pooler:
        environment = {"REDIS_URL": redis.url, "DATABASE_URL": pooler.url}

`make servers` unpacks the programs into `.servers/`; where they are installed, those in PATH are used. Every server
listens on a free port of 127.0.0.1, keeps its files in the folder it is given, which other users have to be able to
enter where the tests run as root, and has answered when its block is entered. It ends with the block.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import redis

from tests.services import Service, ServiceError
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
SERVERS = ROOT / ".servers"
HOST = "127.0.0.1"
# What a failover takes is a few of these: long enough that a server that waits for the CPU is not taken for dead.
DOWN_AFTER_MS = 1500

_FOLDERS = ("usr/bin", "usr/sbin")
# PgBouncer refuses to run as root.
_UNPRIVILEGED = "nobody"


def binary(name: str) -> Path:
    unpacked = next((SERVERS / folder / name for folder in _FOLDERS if (SERVERS / folder / name).exists()), None)
    found = unpacked or shutil.which(name)
    if found is None:
        raise ServiceError(f"{name} is missing: run `make servers`.")
    return Path(found)


def command(name: str) -> list[str]:
    libraries = ":".join(map(str, sorted((SERVERS / "usr" / "lib").glob("*-linux-*"))))
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(binary(name))]


def free_port() -> int:
    """Returns a free port of 127.0.0.1, below those that Linux gives to clients: a server that starts a moment later
    still finds it free."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


@dataclass
class Redis:
    """`options` are command line words, which `start` uses again after `kill`."""

    folder: Path
    options: Sequence[str] = ()
    port: int = field(default_factory=free_port)
    service: Service | None = None

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        words = ["--port", str(self.port), "--bind", HOST, "--dir", str(self.folder), "--save", "", *self.options]
        self.service = Service("redis", [*command("redis-server"), *words], folder=self.folder)
        self.service.wait_until(lambda: listens(self.port))

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        if self.service is not None:
            self.service.stop(by)

    def client(self) -> redis.Redis:
        return redis.Redis(host=HOST, port=self.port, socket_timeout=5)


@contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[Redis]:
    server = Redis(folder, options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@dataclass
class Sentinels:
    service: str
    ports: list[int]
    servers: list[Redis]

    @property
    def url(self) -> str:
        """The address of the product: `redis+sentinel://host,host,host/service/database`."""
        hosts = ",".join(f"{HOST}:{port}" for port in self.ports)
        return f"redis+sentinel://{hosts}/{self.service}/0"

    def primary(self) -> Redis:
        """Returns the server that most sentinels take for the primary."""
        named = [port for port in map(self._named, self.ports) if port]
        chosen = max(set(named), key=named.count)
        return next(server for server in self.servers if server.port == chosen)

    def wait_for_primary(self, *, other_than: Redis) -> Redis:
        """Returns the primary that all sentinels name and that takes writes, after `other_than` was lost."""

        def chosen() -> Redis | None:
            named = {self._named(port) for port in self.ports}
            found = next((server for server in self.servers if named == {server.port}), None)
            return found if found and found is not other_than and _role(found) == "master" else None

        return wait_until(chosen, what="the sentinels to choose another primary")

    def _named(self, port: int) -> int | None:
        with redis.Redis(host=HOST, port=port, socket_timeout=5) as sentinel:
            found = sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service)
        return int(found[1]) if found else None


@contextmanager
def redis_sentinel(
    folder: Path, *options: str, replicas: int = 1, sentinels: int = 3, service: str = "gateway"
) -> Iterator[Sentinels]:
    """`options` are the data servers'. Of three sentinels, two have to agree."""
    with ExitStack() as stack:
        primary = stack.enter_context(redis_server(folder / "redis-0", *options))
        following = (*options, "--replicaof", f"{HOST} {primary.port}", "--repl-diskless-sync-delay", "0")
        replica_servers = [
            stack.enter_context(redis_server(folder / f"redis-{number}", *following))
            for number in range(1, replicas + 1)
        ]
        group = Sentinels(service, [], [primary, *replica_servers])
        wait_until(lambda: all(map(_follows, replica_servers)), what="the replicas to follow")
        for number in range(sentinels):
            group.ports.append(_start_sentinel(folder / f"sentinel-{number}", group, sentinels // 2 + 1, stack))
        wait_until(lambda: all(_knows(port, group, sentinels) for port in group.ports), what="the sentinels to meet")
        yield group


@dataclass
class Cluster:
    nodes: list[Redis]

    @property
    def url(self) -> str:
        """The address of the product: `redis+cluster://host,host,host`, three of the nodes."""
        return "redis+cluster://" + ",".join(f"{HOST}:{node.port}" for node in self.nodes[:3])

    def primaries(self) -> list[Redis]:
        return [node for node in self.nodes if _role(node) == "master"]

    def wait_until_whole(self) -> None:
        wait_until(lambda: all(map(_is_whole, self.nodes)), what="the cluster to have all slots")


@contextmanager
def redis_cluster(folder: Path, *options: str, nodes: int = 6, replicas: int = 1) -> Iterator[Cluster]:
    with ExitStack() as stack:
        started = []
        for number in range(nodes):
            # The usual port of the cluster's bus, 10,000 above, may be none; a port of its own is free.
            own = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
            waits = ("--cluster-node-timeout", str(DOWN_AFTER_MS), "--repl-diskless-sync-delay", "0")
            started.append(stack.enter_context(redis_server(folder / f"node-{number}", *own, *waits, *options)))
        addresses = [f"{HOST}:{node.port}" for node in started]
        make = ["--cluster", "create", *addresses, "--cluster-replicas", str(replicas), "--cluster-yes"]
        made = subprocess.run([*command("redis-cli"), *make], capture_output=True, text=True, check=False)
        if made.returncode:
            raise ServiceError(f"the cluster was not made:\n{made.stdout}{made.stderr}")
        cluster = Cluster(started)
        cluster.wait_until_whole()
        yield cluster


@dataclass
class PgBouncer:
    """A pooler; `url` is the DATABASE_URL through it, `admin_url` that of its console (SHOW POOLS)."""

    port: int
    url: str
    admin_url: str
    service: Service


@contextmanager
def pgbouncer(
    folder: Path, database_url: str, *, pool_size: int = 3, pool_mode: str = "transaction", **settings: str | int
) -> Iterator[PgBouncer]:
    user = _UNPRIVILEGED if os.geteuid() == 0 else None
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    port, parts = free_port(), urlsplit(database_url)
    query = dict(parse_qsl(parts.query))
    name, login = parts.path.lstrip("/"), unquote(parts.username or "postgres")
    target = f"host={query.get('host') or parts.hostname} port={query.get('port') or parts.port or 5432} user={login}"
    if parts.password:
        target += f" password={unquote(parts.password)}"
    lines = {
        "listen_addr": HOST,
        "listen_port": port,
        "unix_socket_dir": "",
        # Everybody may come in, as the user of the line of the database.
        "auth_type": "any",
        "pool_mode": pool_mode,
        "default_pool_size": pool_size,
        "max_client_conn": 1000,
        "admin_users": login,
        # As docs/operations.md has them.
        "query_wait_timeout": 10,
        "server_login_retry": 1,
        **settings,
    }
    configuration = folder / "pgbouncer.ini"
    body = "".join(f"{key} = {value}\n" for key, value in lines.items())
    configuration.write_text(f"[databases]\n{name} = {target} dbname={name}\n[pgbouncer]\n{body}", encoding="utf-8")
    service = Service("pgbouncer", [*command("pgbouncer"), str(configuration)], folder=folder, user=user)
    try:
        service.wait_until(lambda: listens(port))
        address = f"postgresql://{login}@{HOST}:{port}"
        yield PgBouncer(port, f"{address}/{name}", f"{address}/pgbouncer", service)
    finally:
        # SIGTERM ends it at once, SIGINT waits for its clients.
        service.stop(signal.SIGTERM)


@dataclass
class HAProxy:
    """A load balancer; `url` is its own, `socket` its runtime interface, as `show stat`."""

    port: int
    socket: Path
    service: Service

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def status(self) -> dict[str, str]:
        lines = self.ask("show stat").removeprefix("# ").splitlines()
        names = lines[0].split(",")
        rows = [dict(zip(names, line.split(","), strict=False)) for line in lines[1:] if line]
        return {row["svname"]: row["status"] for row in rows if row["svname"] not in ("FRONTEND", "BACKEND")}

    def ask(self, words: str) -> str:
        with socket.socket(socket.AF_UNIX) as channel:
            channel.connect(str(self.socket))
            channel.sendall(words.encode() + b"\n")
            return b"".join(iter(lambda: channel.recv(65536), b"")).decode()


@contextmanager
def haproxy(folder: Path, configuration: str | None = None, *, backends: Sequence[str] = ()) -> Iterator[HAProxy]:
    """`backends` are like `127.0.0.1:8000`; each is asked `/readyz` every second.

    A whole `configuration` replaces this, with `{port}`, `{socket}` and `{servers}` filled in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port, runtime = free_port(), folder / "haproxy.sock"
    servers = "\n".join(f"    server host-{number} {address} check" for number, address in enumerate(backends, 1))
    text = (configuration or _HAPROXY).format(port=port, socket=runtime, servers=servers)
    file = folder / "haproxy.cfg"
    file.write_text(text, encoding="utf-8")
    service = Service("haproxy", [*command("haproxy"), "-db", "-f", str(file)], folder=folder)
    try:
        service.wait_until(lambda: listens(port))
        yield HAProxy(port, runtime, service)
    finally:
        service.stop()


# A request that no host has begun to answer goes to another one; what a host has begun is not repeated.
_HAPROXY = """\
global
    stats socket {socket} mode 600 level admin
defaults
    mode http
    timeout connect 2s
    timeout client 300s
    timeout server 300s
    retries 3
    option redispatch 1
    retry-on conn-failure
frontend gateway
    bind 127.0.0.1:{port}
    default_backend hosts
backend hosts
    balance roundrobin
    option httpchk GET /readyz
    default-server inter 1s fall 2 rise 1
{servers}
"""


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _start_sentinel(folder: Path, group: Sentinels, quorum: int, stack: ExitStack) -> int:
    folder.mkdir(parents=True)
    port, configuration = free_port(), folder / "sentinel.conf"
    name = group.service
    lines = [
        f"port {port}",
        f"bind {HOST}",
        f"dir {folder}",
        f"sentinel monitor {name} {HOST} {group.servers[0].port} {quorum}",
        f"sentinel down-after-milliseconds {name} {DOWN_AFTER_MS}",
        f"sentinel failover-timeout {name} {10 * DOWN_AFTER_MS}",
    ]
    configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
    service = Service("sentinel", [*command("redis-sentinel"), str(configuration)], folder=folder)
    stack.callback(service.stop)
    service.wait_until(lambda: listens(port))
    return port


def _knows(port: int, group: Sentinels, sentinels: int) -> bool:
    """A sentinel that does not know all others and all replicas could not choose a primary."""
    with redis.Redis(host=HOST, port=port, socket_timeout=5) as sentinel:
        state = sentinel.sentinel_master(group.service)
    known = state["num-other-sentinels"], state["num-slaves"]
    return known == (sentinels - 1, len(group.servers) - 1)


def _follows(server: Redis) -> bool:
    with server.client() as client:
        return bool(client.info("replication").get("master_link_status") == "up")


def _role(server: Redis) -> str:
    try:
        with server.client() as client:
            return str(client.info("replication")["role"])
    except redis.ConnectionError:
        return ""


def _is_whole(node: Redis) -> bool:
    try:
        with node.client() as client:
            state = client.execute_command("CLUSTER INFO")
            shards = client.execute_command("CLUSTER NODES")
    except redis.ConnectionError:
        # A node that was killed has no say.
        return True
    is_complete = state.get("cluster_state") == "ok" and int(state["cluster_slots_ok"]) == 16384
    return is_complete and "handshake" not in str(shards)
