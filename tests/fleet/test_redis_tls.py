"""TLS, and a user who may do exactly what docs/redis.md says."""

from __future__ import annotations

import logging
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kombu
import pytest
import redis
import requests
import trustme

from core.redis.broker import broker
from core.redis.checks import COMMANDS, OF_BROKERS, OF_CLUSTERS, look_at, name_of
from gateway.project_settings.limits import ProjectLimits
from tests.fleet.redis_uses import projects, uses
from tests.fleet.servers import HOST, command, free_port, listens
from tests.live.conftest import StartService
from tests.live.prompts import Project
from tests.live.service import ROOT
from tests.services import Service
from tests.waiting import TIMEOUT_SECONDS, wait_until

PASSWORD = "pass-of-the-gateway"


def documented_user() -> list[str]:
    """Returns the words of docs/redis.md that make the user, with our password."""
    text = (ROOT / "docs" / "redis.md").read_text(encoding="utf-8")
    found = re.search(r"```\n(user gateway .+?)```", text, re.DOTALL)
    assert found
    return found[1].replace(">PASSWORD", f">{PASSWORD}").split()


@dataclass
class SecureRedis:
    folder: Path
    authority: trustme.CA
    port: int = field(default_factory=free_port)

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    def url(self, *, user: str = f"gateway:{PASSWORD}", host: str = "localhost", query: str | None = None) -> str:
        return f"rediss://{user}@{host}:{self.port}/0{f'?ssl_ca_certs={self.ca_file}' if query is None else query}"

    def calls(self, name: str) -> int:
        with redis.Redis.from_url(self.url(user="default:watcher")) as client:
            found: dict[str, dict[str, int]] = client.info("commandstats")
        return found.get(f"cmdstat_{name}", {"calls": 0})["calls"]

    def refusals(self) -> list[str]:
        with redis.Redis.from_url(self.url(user="default:watcher")) as client:
            return [f"{entry['reason']} {entry['object']}" for entry in client.acl_log()]


@contextmanager
def secure_redis(folder: Path) -> Iterator[SecureRedis]:
    server = SecureRedis(folder, trustme.CA())
    server.authority.cert_pem.write_to_path(str(server.ca_file))
    made = server.authority.issue_cert("localhost")
    made.private_key_pem.write_to_path(str(folder / "key.pem"))
    made.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    users = " ".join(documented_user()) + "\nuser default on >watcher ~* &* +@all\n"
    (folder / "users.acl").write_text(users, encoding="utf-8")
    options = {
        "port": "0",
        "tls-port": str(server.port),
        "bind": HOST,
        "tls-ca-cert-file": str(server.ca_file),
        "tls-cert-file": str(folder / "cert.pem"),
        "tls-key-file": str(folder / "key.pem"),
        "tls-auth-clients": "no",
        "aclfile": str(folder / "users.acl"),
        "save": "",
        "dir": str(folder),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    service = Service("redis", [*command("redis-server"), *words], folder=folder)
    try:
        wait_until(lambda: not look_at(server.url(user="default:watcher"), is_broker=True).faults)
        yield server
    finally:
        service.stop()


@contextmanager
def secure_cluster(folder: Path) -> Iterator[str]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    # Nodes name each other by their addresses.
    made = authority.issue_cert(HOST)
    made.private_key_pem.write_to_path(str(folder / "key.pem"))
    made.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    with ExitStack() as stack:
        nodes = [_start_node(folder, number, stack) for number in range(3)]
        ask = [*command("redis-cli"), "--tls", "--cacert", str(folder / "ca.pem"), "--cluster", "create"]
        subprocess.run([*ask, *nodes, "--cluster-yes"], check=True, capture_output=True)
        url = f"rediss+cluster://{nodes[0]},{nodes[1]}?ssl_ca_certs={folder / 'ca.pem'}"
        wait_until(lambda: not look_at(url, is_broker=False).faults, what="the cluster to have all slots")
        yield url


def _start_node(folder: Path, number: int, stack: ExitStack) -> str:
    data, port = folder / f"node-{number}", free_port()
    data.mkdir()
    options = {
        "port": "0",
        "tls-port": str(port),
        "bind": HOST,
        "tls-ca-cert-file": str(folder / "ca.pem"),
        "tls-cert-file": str(folder / "cert.pem"),
        "tls-key-file": str(folder / "key.pem"),
        "tls-auth-clients": "no",
        "tls-cluster": "yes",
        "cluster-enabled": "yes",
        "cluster-port": str(free_port()),
        "save": "",
        "dir": str(data),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    service = Service("redis", [*command("redis-server"), *words], folder=data)
    stack.callback(service.stop)
    service.wait_until(lambda: listens(port))
    return f"{HOST}:{port}"


@contextmanager
def secure_sentinel(server: SecureRedis, password: str) -> Iterator[str]:
    folder, port = server.folder / "sentinel", free_port()
    folder.mkdir()
    lines = [
        "port 0",
        f"tls-port {port}",
        f"bind {HOST}",
        f"dir {folder}",
        "tls-replication yes",
        "tls-auth-clients no",
        f"tls-ca-cert-file {server.ca_file}",
        f"tls-cert-file {server.folder / 'cert.pem'}",
        f"tls-key-file {server.folder / 'key.pem'}",
        f"requirepass {password}",
        # The certificate is for a name.
        "sentinel resolve-hostnames yes",
        "sentinel announce-hostnames yes",
        f"sentinel monitor gateway localhost {server.port} 1",
        "sentinel auth-user gateway default",
        "sentinel auth-pass gateway watcher",
    ]
    (folder / "sentinel.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    service = Service("sentinel", [*command("redis-sentinel"), str(folder / "sentinel.conf")], folder=folder)
    user = f"gateway:{PASSWORD}@localhost:{port}"
    url = f"rediss+sentinel://{user}/gateway/0?ssl_ca_certs={server.ca_file}&sentinel_password={password}"
    try:
        wait_until(lambda: not look_at(url, is_broker=True).faults, what="the Sentinel to answer")
        yield url
    finally:
        service.stop()


@pytest.fixture
def server(folder: Path) -> Iterator[SecureRedis]:
    with secure_redis(folder) as running:
        yield running


def test_documented_user__has_the_commands_that_are_checked_and_no_more() -> None:
    allowed = {word.removeprefix("+").upper() for word in documented_user() if word.startswith("+")}
    checked = {name_of(words) for words in (*COMMANDS, *OF_BROKERS, *OF_CLUSTERS)}

    # The check itself is a MULTI; the others make a connection.
    assert allowed == checked | {"MULTI", "EXEC", "HELLO", "SELECT"}


async def test_documented_user__of_a_worker__is_refused_nothing(
    server: SecureRedis, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with uses(server.url()) as one, uses(server.url()) as other:
            for project in projects(3):
                assert "" in [
                    await worker.admit(project, ProjectLimits(requests_per_minute=9)) for worker in (one, other)
                ]

    assert look_at(server.url(), is_broker=True).faults == []
    assert server.refusals() == []
    assert not [line for line in caplog.messages if "redis." in line]


async def test_sentinel__with_tls_and_a_password_of_its_own__leads_to_the_primary(
    server: SecureRedis, caplog: pytest.LogCaptureFixture
) -> None:
    with secure_sentinel(server, "of-the-sentinel") as url:
        async with uses(url) as one:
            assert await one.admit(projects(1)[0], ProjectLimits(requests_per_minute=9)) == ""
        found = look_at(url.replace("of-the-sentinel", "wrong"), is_broker=True).faults

    assert server.refusals() == []
    assert not [line for line in caplog.messages if "redis." in line]
    assert "No Sentinel answers (the user name or the password is wrong" in found[0].message and found[0].is_lasting


async def test_cluster__with_tls__counts_the_requests_of_two_workers_together(folder: Path) -> None:
    with secure_cluster(folder) as url:
        async with uses(url) as one, uses(url) as other:
            for project in projects(9):
                limits = ProjectLimits(requests_per_minute=1)
                refused = [await worker.admit(project, limits) for worker in (one, other, one, other)]
                # The minute may end in between.
                assert "requests" in refused and refused.count("") <= 2


def test_broker__with_tls__takes_a_message_and_trusts_no_other_certificate(server: SecureRedis) -> None:
    with secure_sentinel(server, "of-the-sentinel") as url:
        for address in (url, server.url()):
            with _celery(address) as connection:
                queue = connection.SimpleQueue("celery")
                queue.put({"sent": address})
                taken = queue.get(timeout=TIMEOUT_SECONDS)
                taken.ack()
                assert taken.payload == {"sent": address}
                queue.close()
    with _celery(server.url(query="")) as connection, pytest.raises(connection.connection_errors):
        connection.connect()

    assert server.refusals() == []


def _celery(address: str) -> Any:
    made = broker(address)
    return kombu.Connection(made.url, transport_options=dict(made.transport_options), ssl=dict(made.use_ssl or {}))


def test_documented_user__of_the_product__is_refused_nothing(server: SecureRedis, start_service: StartService) -> None:
    service = start_service({"REDIS_URL": server.url()}, prepared=False)
    project = Project(service, service.project_id, service.api_key)
    project.set(monthly_budget_usd=1000, rate_limit_enabled=True, rate_limit_rpm=1000)
    for _ in range(3):
        service.openai(default_headers={"x-svc-cache": "use"}).chat.completions.create(
            model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}]
        )
    headers = {"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id}
    emptied = requests.delete(f"{service.base_url}/api/llm/cache", headers=headers, timeout=30)
    assert emptied.status_code == 204
    # Celery removes a task from the hash of those that are under way once it has ended.
    wait_until(lambda: server.calls("hdel") > 3, what="tasks of Celery")

    assert server.refusals() == []
    assert service.stop() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query": ""}, "certificate is not trusted"),
        ({"host": "127.0.0.1"}, "for another host name"),
        ({"user": "gateway:wrong"}, "the password is wrong"),
        ({"query": "?ssl_ca_certs=/nowhere/ca.pem"}, "a file that the address names"),
    ],
)
def test_address__that_cannot_work__is_told_in_plain_words(
    server: SecureRedis, change: dict[str, str], words: str
) -> None:
    found = look_at(server.url(**change), is_broker=True).faults

    assert words in found[0].message and found[0].is_lasting
    assert PASSWORD not in found[0].message
