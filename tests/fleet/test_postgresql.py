"""Hosts behind PgBouncer by transaction, and on a PostgreSQL that fails over.

The long forms: FLEET_STARTS=20 starts of two hosts, FLEET_SECONDS=1200 of Celery's tasks.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
import requests
from celery import Celery

from config.settings.celery import CELERY_BEAT_SCHEDULE
from core.redis.broker import broker
from tests.fleet.servers import pgbouncer
from tests.live.fleet import Host, Installation
from tests.live.service import LiveService, minimal_environment
from tests.night import examples
from tests.services import START_SECONDS, start_postgresql, start_redis
from tests.stores import migrate, shared_secrets
from tests.waiting import wait_until

STARTS = int(os.environ.get("FLEET_STARTS") or examples(1, 20))
SECONDS = float(os.environ.get("FLEET_SECONDS") or examples(0, 1200))
POOL = 3

logger = logging.getLogger("tests.fleet")
# What a pooler by transaction breaks, and what becomes of it.
_BROKEN = re.compile(r"does not exist|InvalidCursor|background_task\.failed|Traceback", re.MULTILINE)


def test_hosts__started_at_once_behind_a_pool_of_three__ready_and_a_key_revoked_on_one_is_refused_by_both(
    folder: Path,
) -> None:
    with ExitStack() as stack:
        server, url = start_postgresql(folder / "pg")
        stack.callback(server.stop, signal.SIGINT)
        pooler = stack.enter_context(pgbouncer(folder / "pooler", url, pool_size=POOL))
        environment = _environment(folder, stack, pooler.url)
        manage: dict[str, str] = {}
        for number in range(1, STARTS + 1):
            with _hosts(folder, f"start-{number}", environment) as hosts:
                manage = manage or next(filter(None, map(_first_key, hosts)))
                _revoke(hosts, manage)
                assert [_BROKEN.search(host.log) for host in hosts] == [None, None]
                logger.info("start %d of %d: both ready", number, STARTS)


@pytest.mark.timeout(SECONDS + 900)
def test_celery__every_task_again_and_again_behind_a_pool_of_three__none_fails(folder: Path) -> None:
    with ExitStack() as stack:
        installation = Installation(folder, stack)
        given = installation.environment
        pooler = stack.enter_context(pgbouncer(folder / "pooler", given["DATABASE_URL"], pool_size=POOL))
        own = {"DATABASE_URL": pooler.url, "VAR_DIR": str(folder / "host"), "PRICING_SYNC": "0"}
        host = LiveService(folder / "host", {**given, **own})
        stack.callback(host.stop)
        with (
            Celery(broker=broker(given["REDIS_URL"]).url) as sender,
            redis.Redis.from_url(given["REDIS_URL"]) as queue,
        ):
            schedule: list[dict[str, Any]] = list(CELERY_BEAT_SCHEDULE.values())
            rounds, until = 0, time.monotonic() + SECONDS
            while rounds < 2 or time.monotonic() < until:
                for entry in schedule:
                    sender.send_task(entry["task"], args=entry.get("args", ()))
                wait_until(lambda: not _waiting(queue), seconds=START_SECONDS, what="the tasks to end")
                rounds += 1

        logger.info("%d rounds of %d tasks", rounds, len(schedule))
        assert host.stop() == 0
        assert _BROKEN.search(host.log) is None


def test_failover__primary_is_gone_and_its_replica_promoted__requests_never_fail_and_changes_go_on(
    folder: Path,
) -> None:
    with ExitStack() as stack:
        primary, _ = start_postgresql(folder / "pg")
        stack.callback(primary.stop, signal.SIGQUIT)
        environment = _environment(folder, stack, f"postgresql://postgres@/postgres?host={folder}/pg,{folder}/replica")
        host = LiveService(folder / "host", environment, ("--without", "celery"), prepared=False)
        stack.callback(host.stop)
        replica, replica_url = start_postgresql(folder / "replica", replica_of=folder / "pg")
        stack.callback(replica.stop, signal.SIGINT)
        assert _ask(host.base_url, host.api_key) == 200
        assert _change(host) == 201

        primary.stop(signal.SIGQUIT)
        # Nothing is read from the replica, nor written to it, while it is one.
        assert _change(host) == 503
        assert _ask(host.base_url, host.api_key) == 200
        assert _ask(host.base_url, "svc_of_nobody") == 503
        with psycopg.connect(replica_url, autocommit=True) as chosen:
            chosen.execute("SELECT pg_promote()")

        wait_until(lambda: _change(host) == 201, what="a change on the new primary")
        assert _ask(host.base_url, host.api_key) == 200
        assert _ask(host.base_url, "svc_of_nobody") == 401
        assert "background_task.failed" not in host.log


def test_start__database_and_its_tables_come_later__waits_and_says_for_what(folder: Path) -> None:
    with ExitStack() as stack:
        server, url = start_postgresql(folder / "pg")
        server.stop(signal.SIGINT)
        stack.callback(server.stop, signal.SIGINT)
        environment = _environment(folder, stack, url)
        hosts = [Host(folder, name, environment, ("--no-migrate", "--without", "celery")) for name in ("one", "two")]
        for host in hosts:
            stack.callback(host.kill)
            wait_until(lambda host=host: "database.waiting" in host.log, what="a wait")  # type: ignore[misc]

        assert hosts.pop().stop() == 0
        (host,) = hosts
        server.start_again()
        wait_until(lambda: "tables.waiting" in host.log, what="a wait for tables")
        migrate(folder, environment, "migrate")

        wait_until(lambda: host.address, seconds=2 * START_SECONDS, what="the host to serve")
        assert host.stop() == 0
        assert host.log.count("tables.waiting") == 1
        assert "Traceback" not in host.log


def _waiting(queue: redis.Redis) -> int:
    """A running task counts: it is acknowledged afterwards."""
    return len(queue.lrange("celery", 0, -1)) + len(queue.hkeys("unacked"))


def _environment(folder: Path, stack: ExitStack, database_url: str) -> dict[str, str]:
    server, redis_url = start_redis(folder / "redis")
    stack.callback(server.stop)
    return {
        **minimal_environment(folder),
        **shared_secrets(),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "CLICKHOUSE_URL": "clickhouse://127.0.0.1:1",
        "WEB_WORKERS": "1",
        # Only an announcement has a worker read a change: the re-read comes after the test.
        "SNAPSHOT_SECONDS": "3600",
    }


@contextmanager
def _hosts(folder: Path, name: str, environment: dict[str, str]) -> Iterator[list[Host]]:
    """Both hosts start at once and are ready when the block is entered. The second has few connections for its
    threads.
    """
    frugal = {**environment, "DATABASE_POOL_SIZE": "2"}
    hosts = [Host(folder, f"{name}-a", environment), Host(folder, f"{name}-b", frugal)]
    try:
        for host in hosts:
            wait_until(partial(_is_ready, host), seconds=8 * START_SECONDS, what=f"{host.name} to be ready")
        yield hosts
        assert [host.stop() for host in hosts] == [0, 0]
    finally:
        for host in hosts:
            host.kill()


def _is_ready(host: Host) -> bool:
    assert not host.has_ended, host.log[-2000:]
    return bool(host.address and requests.get(f"{host.address}/readyz", timeout=START_SECONDS).ok)


def _first_key(host: Host) -> dict[str, str] | None:
    key, project = host.printed(r"API key +(\S+)"), host.printed(r"project id +(\S+)")
    return _headers(key, project) if key and project else None


def _headers(key: str, project: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "X-Project-Id": project}


def _revoke(hosts: list[Host], manage: dict[str, str]) -> None:
    """Makes a key on the first host, uses it on both, and revokes it on the first: the second must refuse it too."""
    one, other = (host.address or "" for host in hosts)
    made = requests.post(
        f"{one}/api/llm/keys", headers=manage, json={"name": "k", "scopes": ["gateway"]}, timeout=START_SECONDS
    ).json()
    assert [_ask(address, made["key"]) for address in (one, other)] == [200, 200]

    requests.delete(f"{one}/api/llm/keys/{made['id']}", headers=manage, timeout=START_SECONDS).raise_for_status()
    revoked = time.monotonic()

    for address in (one, other):
        wait_until(partial(_is_refused, address, made["key"]), what=f"{address} to refuse the key")
        logger.info("refused by %s after %.2f s", address, time.monotonic() - revoked)


def _is_refused(address: str, key: str) -> bool:
    return _ask(address, key) == 401


def _ask(address: str, key: str) -> int:
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
    headers = {"Authorization": f"Bearer {key}"}
    return requests.post(
        f"{address}/api/gateway/v1/chat/completions", headers=headers, json=body, timeout=START_SECONDS
    ).status_code


def _change(host: LiveService) -> int:
    return requests.post(
        f"{host.base_url}/api/llm/keys",
        headers=_headers(host.api_key, host.project_id),
        json={"name": "k", "scopes": ["gateway"]},
        timeout=START_SECONDS,
    ).status_code
