from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.redis.checks import COMMANDS, OF_BROKERS, look_at, name_of
from tests.fleet.servers import HOST, Redis, redis_cluster, redis_sentinel, redis_server
from tests.live.service import ROOT, minimal_environment


def messages(url: str) -> list[str]:
    return [fault.message for fault in look_at(url, is_broker=True).faults]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with redis_server(tmp_path_factory.mktemp("redis") / "redis") as running:
        yield running


def test_look__servers_as_their_addresses_say__nothing_is_wrong_with_them(server: Redis, folder: Path) -> None:
    assert look_at(server.url, is_broker=True).clock
    with redis_sentinel(folder / "sentinel") as group:
        assert messages(group.url) == []


def test_look__replica_and_sentinels__are_told_from_a_primary(folder: Path) -> None:
    with redis_sentinel(folder) as group:
        primary, replica = group.servers
        sentinel = f"{HOST}:{group.ports[0]}"
        found = {
            "a replica": messages(replica.url),
            "a Sentinel: write redis+sentinel://": messages(f"redis://{sentinel}"),
            "no Sentinel": messages(f"redis+sentinel://{HOST}:{primary.port}/gateway"),
            "no primary of the name other": messages(f"redis+sentinel://{sentinel}/other"),
        }

    assert all(len(said) == 1 and expected in said[0] for expected, said in found.items()), found


def test_look__cluster_and_single_server__are_told_apart(server: Redis, folder: Path) -> None:
    with redis_cluster(folder) as cluster:
        assert messages(cluster.url) == []
        assert "a node of a Redis Cluster: write redis+cluster://" in messages(cluster.nodes[0].url)[0]
    assert "one server" in messages(f"redis+cluster://{HOST}:{server.port}")[0]


def test_look__keys_are_dropped__is_said(folder: Path) -> None:
    with redis_server(folder, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as dropping:
        found = look_at(dropping.url, is_broker=True).faults

    assert ["allkeys-lru" in fault.message and not fault.is_lasting for fault in found] == [True]


@pytest.mark.parametrize("name", sorted({name_of(words) for words in (*COMMANDS, *OF_BROKERS)}))
def test_look__user_lacks_one_command__is_named(server: Redis, name: str) -> None:
    with _user(server, "+@all", f"-{name}") as url:
        assert f"may not run {name}:" in messages(url)[0]


def test_look__user_lacks_the_keys__the_commands_are_named(server: Redis) -> None:
    with _user(server, "+@all", "resetkeys", "~other:*") as url:
        assert "EVALSHA" in messages(url)[0]


def test_look__wrong_password_and_nobody_there__waiting_helps_with_one_of_them(server: Redis) -> None:
    wrong, nobody = (
        look_at(url, is_broker=True).faults for url in (server.url.replace("//", "//a:b@"), "redis://127.0.0.1:1")
    )

    assert "password is wrong" in wrong[0].message and wrong[0].is_lasting
    assert "does not answer (ConnectionError)" in nobody[0].message and not nobody[0].is_lasting


@pytest.mark.parametrize(
    ("name", "way_out"), [("REDIS_URL", ": write redis+cluster://"), ("CELERY_BROKER_URL", ", which Celery cannot use")]
)
def test_serve__redis_that_cannot_work__is_refused_in_a_sentence(name: str, way_out: str, folder: Path) -> None:
    with redis_cluster(folder / "cluster", nodes=3, replicas=0) as cluster:
        ran = _serve(folder / "var", **{name: cluster.nodes[0].url})

    assert ran.returncode == 1
    assert f"{name}: The address leads to a node of a Redis Cluster{way_out}" in ran.stderr


def test_serve__cluster_without_a_broker__says_what_to_set(folder: Path) -> None:
    ran = _serve(folder, REDIS_URL="redis+cluster://127.0.0.1:1")

    assert ran.returncode == 1
    assert ran.stderr.startswith("Environment variable CELERY_BROKER_URL: expected the address of another Redis")


def _serve(var_dir: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "serve"],
        cwd=ROOT,
        env={**minimal_environment(var_dir), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def _user(server: Redis, *rules: str) -> Iterator[str]:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "gateway", "reset", "on", ">private", "~*", "&*", *rules)
        try:
            yield server.url.replace("//", "//gateway:private@")
        finally:
            client.execute_command("ACL", "DELUSER", "gateway")
