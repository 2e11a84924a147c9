from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

import psutil
import psycopg
import redis
from clickhouse_driver import Client

from benchmarks import processes
from benchmarks.scaling.hosts import Installation

_TRANSACTIONS = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
# A table numbers the blocks that inserts bring, in each partition for itself, and merges keep the numbers.
_BATCHES = """
SELECT sum(blocks) FROM (
    SELECT max(max_block_number) AS blocks FROM system.parts
    WHERE table = 'requests' AND database = currentDatabase() GROUP BY partition_id
)
"""


class Part(StrEnum):
    WEB = "web workers"
    SHIPPERS = "shippers"
    OTHERS = "other processes of the hosts"
    CLICKHOUSE = "ClickHouse"
    REDIS = "Redis"
    POSTGRESQL = "PostgreSQL"


class Count(StrEnum):
    TRANSACTIONS = "transactions"
    COMMANDS = "commands"
    REDIS_BYTES = "bytes to and from Redis"
    BATCHES = "batches"


class Level(StrEnum):
    POSTGRESQL = "connections to PostgreSQL"
    REDIS = "connections to Redis"


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU in microseconds, at `at` seconds of a monotonic clock; `roles` are those of all hosts' processes by their
    ids."""

    at: float
    roles: dict[int, str]
    cpu: dict[Part, float]
    counts: dict[Count, float]
    levels: dict[Level, float]


@dataclass(frozen=True, slots=True)
class Use:
    hosts: int
    rate: float
    cpu: dict[Part, float]
    counts: dict[Count, float]
    levels: dict[Level, float]


def use(hosts: int, rate: float, readings: tuple[Reading, Reading]) -> Use:
    """Raises RuntimeError if a process was replaced, whose use is in no reading."""
    before, after = readings
    if replaced := before.roles.items() ^ after.roles.items():
        raise RuntimeError(
            f"processes of the hosts ended or started: {', '.join(sorted({role for _, role in replaced}))}"
        )
    seconds = after.at - before.at
    return Use(
        hosts,
        rate,
        {part: (after.cpu[part] - before.cpu[part]) / seconds for part in Part},
        {count: (after.counts[count] - before.counts[count]) / seconds for count in Count},
        {level: max(before.levels[level], after.levels[level]) for level in Level},
    )


class Meter:
    """Reads an installation. Its own connections are in no figure."""

    def __init__(self, installation: Installation, stack: ExitStack) -> None:
        stores = installation.stores
        self._installation = installation
        self._postgresql = stack.enter_context(closing(psycopg.connect(stores.database_url, autocommit=True)))
        self._redis = stack.enter_context(closing(redis.Redis.from_url(stores.redis_url)))
        self._clickhouse = stack.enter_context(Client.from_url(stores.clickhouse_url))
        self._own_backend = self._postgresql.info.backend_pid
        self._asked = 0

    def begin(self) -> Reading:
        counts, levels = self._counted()
        return Reading(time.monotonic(), self._roles(), self._cpu(), counts, levels)

    def end(self) -> Reading:
        # What the questions cost the stores is in no window: they come before its beginning and after its end.
        at, cpu = time.monotonic(), self._cpu()
        return Reading(at, self._roles(), cpu, *self._counted())

    def _roles(self) -> dict[int, str]:
        return {pid: role for host in self._installation.hosts for pid, role in host.roles().items()}

    def _counted(self) -> tuple[dict[Count, float], dict[Level, float]]:
        found = self._redis.info()
        [(batches,)] = self._clickhouse.execute(_BATCHES)
        counts = {
            Count.TRANSACTIONS: self._ask(_TRANSACTIONS) - self._asked,
            Count.COMMANDS: float(found["total_commands_processed"]),
            Count.REDIS_BYTES: float(found["total_net_input_bytes"] + found["total_net_output_bytes"]),
            Count.BATCHES: float(batches),
        }
        return counts, {
            Level.POSTGRESQL: self._ask(_CONNECTIONS),
            Level.REDIS: float(found["connected_clients"] - 1),
        }

    def _ask(self, question: str) -> float:
        self._asked += 1
        row = self._postgresql.execute(question).fetchone()
        return float(row[0]) if row else 0.0

    def _cpu(self) -> dict[Part, float]:
        stores, hosts = self._installation.stores, self._installation.hosts
        found = dict.fromkeys(Part, 0.0)
        for host in hosts:
            web, beside = host.serving(), host.beside()
            found[Part.WEB] += _cpu(web)
            found[Part.SHIPPERS] += _cpu(beside.pop("shipper", []))
            found[Part.OTHERS] += sum(_cpu(of_role) for of_role in beside.values())
        found[Part.CLICKHOUSE] = _cpu(processes.tree(stores.engine.pid))
        found[Part.REDIS] = _cpu(processes.tree(stores.redis.pid))
        servers = [one for one in processes.tree(stores.postgresql.pid) if one.pid != self._own_backend]
        found[Part.POSTGRESQL] = _cpu(servers)
        return found


def _cpu(of: list[psutil.Process]) -> float:
    """Includes processes they have waited for: a PostgreSQL server process lives as long as its connection."""
    ended = 0.0
    for process in of:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            ended += times.children_user + times.children_system
    return (processes.cpu_seconds(of) + ended) * 1e6


@contextmanager
def meter(installation: Installation) -> Iterator[Meter]:
    with ExitStack() as stack:
        yield Meter(installation, stack)
