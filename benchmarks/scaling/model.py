"""How many hosts, shards, replicas and dollars a rate of requests takes: pure arithmetic over measurements.

A layout is one installation or several alike. Its bottleneck is what fills first: something it can have more of
(`Elastic`), or something an installation has once (`Fixed`), which needs more installations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import count

from benchmarks.scaling.figures import Measured, Numbers, Prices
from benchmarks.scaling.inputs import Mix, Shape

MAX_RATE = 1e8
# What a worker hears about the health of providers a second, and what it sends, at most (integrations/health/sync.py).
HEALTH_MESSAGES, HEALTH_MESSAGES_SENT = 250.0, 4.0
DAY, MONTH_HOURS = 86_400.0, 730.0
_KB, _GB = 1024.0, 1e9
# Of a session's budget, from its last request on (gateway/limits/terms.py).
SESSION_DAYS = 30.0
_MIN_SHARD_CORES = 4
_CORES = (2, 4, 8, 16, 32, 64, 128)


class Elastic(StrEnum):
    WEB = "CPU of web hosts"
    ANSWERS = "answers under way"
    REDIS = "CPU of Redis"
    BUDGETS = "memory of Redis"
    CLICKHOUSE = "CPU of ClickHouse"
    DISK = "disk of ClickHouse"
    MACHINE = "CPU of the machine"


class Fixed(StrEnum):
    HOSTS = "hosts of an installation"
    BATCHES = "batches of all hosts at each shard"
    POSTGRESQL = "CPU of PostgreSQL"
    PROJECT_LIMITS = "one project's limits: one Redis primary"
    PROJECT_ROWS = "one project's rows: one shard"


class Layout(Numbers, frozen=True, kw_only=True):
    """The servers of each installation. A `single` one is one machine, with the stores that are embedded."""

    rate: float
    """Requests a second in the busiest minute, of all installations."""
    installations: int = 1
    hosts: int = 1
    primaries: int = 1
    shards: int = 1
    shard_cores: int = 0
    single: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    measured: Measured
    mix: Mix = Mix()  # noqa: RUF009 - it is frozen
    shape: Shape = Shape()  # noqa: RUF009 - it is frozen

    # What a request costs

    @property
    def web_us(self) -> float:
        web, mix = self.measured.web, self.mix
        body = web.kilobyte_us * max(0.0, mix.request_bytes / _KB - 1)
        more = web.limits_us * mix.limits + web.prompt_us * mix.prompts
        return web.request_us + body + more + web.chunk_us * mix.chunks * mix.streams

    @property
    def host_us(self) -> float:
        return self.web_us + self.measured.records.shipper_us

    @property
    def text_kb(self) -> float:
        return self.mix.texts * (self.mix.request_bytes + self.mix.answer_bytes) / _KB

    @property
    def row_us(self) -> float:
        return self.measured.records.row_us + self.measured.records.text_us * self.text_kb

    @property
    def row_bytes(self) -> float:
        return self.measured.records.row_bytes + self.measured.records.text_bytes * self.text_kb

    @property
    def spool_bytes(self) -> float:
        """A stream waits there as the events that the client got."""
        return self.measured.records.spool_bytes + self.mix.texts * (self.mix.request_bytes + self.answer_bytes)

    @property
    def answer_bytes(self) -> float:
        mix = self.mix
        return mix.streams * mix.chunks * mix.chunk_bytes + (1 - mix.streams) * mix.answer_bytes

    # What a number of hosts costs, whatever they serve; microseconds of CPU a second

    def batches_us(self, hosts: float) -> float:
        return hosts * self.measured.stores.batches * self.measured.records.insert_us

    def redis_us(self, rate: float, hosts: float) -> float:
        workers, stores = hosts * self.shape.workers, self.measured.stores
        messages = min(HEALTH_MESSAGES_SENT * workers, HEALTH_MESSAGES)
        told = messages * workers * stores.redis_delivery_us
        return rate * self.mix.limits * stores.redis_limits_us + hosts * stores.redis_host_us + told

    # What a layout needs beside its servers' CPU

    def stored_gb(self, rate: float) -> float:
        return rate * self.mix.mean * DAY * self.mix.retention_days * self.row_bytes / _GB

    def redis_gb(self, rate: float) -> float:
        sessions = rate * self.mix.mean * self.mix.sessions * DAY * SESSION_DAYS / self.mix.session_requests
        return sessions * self.measured.stores.redis_scope_bytes / _GB

    def in_flight(self, rate: float) -> float:
        return rate * self.mix.seconds

    def in_flight_of_any(self, cores: float) -> float:
        """Assumes the worst case: streams of 50 chunks a second."""
        return cores * self.shape.web_share * 1e6 / (50 * self.measured.web.chunk_us)

    def connections(self, layout: Layout) -> float:
        return layout.hosts * self.measured.stores.postgresql_connections

    def pool(self, layout: Layout) -> int:
        """PgBouncer needs twice what transactions hold on average, and the usual 20 at least."""
        busy = layout.hosts * self.measured.stores.postgresql_transactions * self.shape.transaction_seconds
        return max(20, math.ceil(2 * busy))

    # The layout for a rate

    def plan(self, rate: float, *, single: bool = False) -> Layout:
        """Raises ValueError for a rate of 0 or one too large for a single machine."""
        if not 0 < rate <= MAX_RATE:
            raise ValueError(f"the rate has to be above 0 and at most {MAX_RATE:,.0f} a second, not {rate}")
        if single:
            return self._single(rate)
        first = max(1, self._hosts(rate) // self.shape.max_hosts)
        return next(made for number in count(first) if (made := self._installations(rate, number)) is not None)

    def _single(self, rate: float) -> Layout:
        layout = Layout(rate=rate, single=True)
        full, most = next(iter(self.ceilings(layout).items()))
        if rate > most * self.shape.web_share:
            raise ValueError(f"the {full} is enough for {most * self.shape.web_share:,.0f} requests a second")
        return layout

    def _hosts(self, rate: float) -> int:
        by_cpu = rate * self.host_us / 1e6 / self.shape.web_share
        by_answers = self.in_flight(rate) / self.shape.connections
        return math.ceil(max(by_cpu, by_answers) / self.shape.workers)

    def _installations(self, rate: float, number: int) -> Layout | None:
        each, shape = rate / number, self.shape
        # One more than is needed, so that the loss of one is no overload.
        hosts = max(3, self._hosts(each) + 1)
        by_redis = max(self.redis_us(each, hosts) / 1e6 / shape.store_share, self.redis_gb(each) / shape.redis_gb)
        capacity = shape.shard_cores * shape.store_share * 1e6
        left = capacity - self.batches_us(hosts)
        if left <= 0:
            return None
        # A cluster has three primaries at least.
        primaries = 1 if by_redis <= 1 else max(3, math.ceil(by_redis))
        shards = max(1, math.ceil(max(each * self.row_us / left, self.stored_gb(each) / self._shard_gb)))
        needed = (each * self.row_us / shards + self.batches_us(hosts)) / shape.store_share / 1e6
        # Questions over days of requests need some cores, too.
        cores = min(max(_MIN_SHARD_CORES, _server(needed)), shape.shard_cores)
        layout = Layout(
            rate=rate, installations=number, hosts=hosts, primaries=primaries, shards=shards, shard_cores=cores
        )
        used = self.fixed(layout)
        return layout if max(used[one] for one in (Fixed.HOSTS, Fixed.BATCHES, Fixed.POSTGRESQL)) <= 1 else None

    @property
    def _shard_gb(self) -> float:
        # Merges write a part anew before they remove it.
        return self.shape.shard_gb * 0.8

    # What it is full of first

    def elastic(self, layout: Layout, rate: float) -> Mapping[Elastic, float]:
        each, shape = rate / layout.installations, self.shape
        workers = layout.hosts * shape.workers
        rows_us = each * self.row_us / layout.shards + self.batches_us(layout.hosts)
        used = {
            Elastic.WEB: each * self.host_us / 1e6 / workers,
            Elastic.ANSWERS: self.in_flight(each) / (workers * shape.connections),
            Elastic.REDIS: self.redis_us(each, layout.hosts) / 1e6 / layout.primaries,
            Elastic.BUDGETS: self.redis_gb(each) / layout.primaries / shape.redis_gb,
            Elastic.DISK: self.stored_gb(each) / layout.shards / self._shard_gb,
        }
        if layout.single:
            every = each * self.host_us + rows_us + self.redis_us(each, layout.hosts)
            return used | {Elastic.MACHINE: every / 1e6 / shape.machine_cores}
        return used | {Elastic.CLICKHOUSE: rows_us / 1e6 / layout.shard_cores}

    def fixed(self, layout: Layout) -> Mapping[Fixed, float]:
        """Returns the used shares of what may be used. Half of a shard is for batches, however small."""
        shape, largest = self.shape, layout.rate * self.mix.largest_project
        core, stores = shape.store_share * 1e6, self.measured.stores
        return {
            Fixed.HOSTS: layout.hosts / shape.max_hosts,
            Fixed.BATCHES: self.batches_us(layout.hosts) / (core * shape.shard_cores / 2),
            Fixed.POSTGRESQL: layout.hosts * stores.postgresql_us / (core * shape.postgresql_cores),
            Fixed.PROJECT_LIMITS: largest * self.mix.limits * stores.redis_limits_us / core,
            Fixed.PROJECT_ROWS: largest * self.row_us / (core * shape.shard_cores),
        }

    def ceilings(self, layout: Layout) -> dict[Elastic, float]:
        idle, loaded = self.elastic(layout, 0.0), self.elastic(layout, 1.0)
        found = {one: max(0.0, 1 - idle[one]) / more for one in idle if (more := loaded[one] - idle[one]) > 0}
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def limits_of_an_installation(self, layout: Layout) -> dict[Fixed, float]:
        """Returns the rate at which an installation uses up each of them when its hosts grow with the rate, lowest
        first; for one project, that project's rate."""
        each, used = layout.rate / layout.installations, self.fixed(layout)
        project = layout.rate * self.mix.largest_project
        rates = {
            one: (project if one in (Fixed.PROJECT_LIMITS, Fixed.PROJECT_ROWS) else each) / share
            for one, share in used.items()
            if share > 0
        }
        return dict(sorted(rates.items(), key=lambda item: item[1]))

    # What it costs

    def dollars(self, layout: Layout, prices: Prices) -> dict[str, float]:
        each = layout.rate / layout.installations
        egress = layout.rate * self.mix.mean * MONTH_HOURS * 3600 * (self.mix.request_bytes + self.answer_bytes) / _GB
        parts = {
            name: layout.installations * _month(*needs, prices) for name, needs in self._needs(layout, each).items()
        }
        return parts | {"egress": egress * prices.egress_gb}

    def _needs(self, layout: Layout, each: float) -> dict[str, tuple[float, float, float]]:
        shape, stored = self.shape, self.stored_gb(each) / 0.8
        if layout.single:
            return {"web": (shape.machine_cores, 2 * shape.machine_cores, 20), "ClickHouse": (0, 0, stored)}
        chunks = self.measured.web.proxy_chunk_us * self.mix.chunks * self.mix.streams
        proxies = max(2, math.ceil(each * (self.measured.web.proxy_request_us + chunks) / 1e6 / shape.store_share))
        nodes, replicas = 2 * layout.primaries, layout.shards * shape.replicas
        cores, redis_gb = replicas * layout.shard_cores, max(1.0, 2 * self.redis_gb(each) / layout.primaries)
        used = layout.hosts * self.measured.stores.postgresql_us / 1e6
        postgresql = _server(used / shape.store_share)
        return {
            # The two hosts of background tasks have a core each; the volume of each host is for its spool.
            "web": (layout.hosts * shape.workers + 2, layout.hosts * shape.workers + 4, 10 * (layout.hosts + 2)),
            "proxies": (2 * proxies, 2 * proxies, 0),
            "PostgreSQL": (2 * postgresql, 8 * postgresql, 100),
            "Redis": (2 * nodes, nodes * redis_gb, 0),
            # Three servers of Keeper have two cores and 4 GB each.
            "ClickHouse": (cores + 6, 4 * cores + 12, shape.replicas * stored),
        }


def _server(cores: float) -> int:
    return next((size for size in _CORES if size >= cores), _CORES[-1])


def _month(cores: float, memory_gb: float, disk_gb: float, prices: Prices) -> float:
    hourly = cores * prices.core_hour + memory_gb * prices.memory_gb_hour
    return hourly * MONTH_HOURS + disk_gb * prices.disk_gb_month
