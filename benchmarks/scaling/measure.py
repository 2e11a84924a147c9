from __future__ import annotations

from collections.abc import Iterator

import msgspec

from benchmarks.scaling.figures import Measured, Records, Stores, described
from benchmarks.scaling.model import Model
from benchmarks.scaling.observation import Observed
from benchmarks.scaling.readings import Count, Level, Part


def stores(observed: Observed, measured: Measured, where: str) -> Stores:
    """Returns what a host asks whatever it serves: its share of what several idle hosts do, without batches, which idle
    ones do not send."""
    idle, loaded = observed.idle[1], observed.loaded[1]
    hosts = idle.hosts
    return msgspec.structs.replace(
        measured.stores,
        source=_source(measured.stores.source, "hosts and budgets", where),
        batches=loaded.counts[Count.BATCHES] / hosts,
        postgresql_connections=max(idle.levels[Level.POSTGRESQL], loaded.levels[Level.POSTGRESQL]) / hosts,
        postgresql_transactions=idle.counts[Count.TRANSACTIONS] / hosts,
        postgresql_us=idle.cpu[Part.POSTGRESQL] / hosts,
        redis_connections=max(idle.levels[Level.REDIS], loaded.levels[Level.REDIS]) / hosts,
        redis_host_commands=idle.counts[Count.COMMANDS] / hosts,
        redis_host_us=idle.cpu[Part.REDIS] / hosts,
        redis_scope_bytes=observed.scope_bytes,
    )


def limits(observed: Observed, measured: Measured, where: str) -> Stores:
    """Returns what a request with all limits costs Redis on one idle host, where few requests share a command. Leaves
    out the cost of health deliveries."""
    idle, loaded = observed.idle[0], observed.loaded[0]
    told = Model(measured).redis_us(0, 1) - measured.stores.redis_host_us
    more_us = loaded.cpu[Part.REDIS] - idle.cpu[Part.REDIS] - told
    more_bytes = loaded.counts[Count.REDIS_BYTES] - idle.counts[Count.REDIS_BYTES]
    return msgspec.structs.replace(
        measured.stores,
        source=_source(measured.stores.source, "limits", where),
        redis_limits_us=max(0.0, more_us) / loaded.rate,
        redis_limits_bytes=max(0.0, more_bytes) / loaded.rate,
    )


def batches(observed: Observed, measured: Measured, where: str) -> Records:
    """Returns what a batch costs: the same requests came from one host, and from several with as many times the
    batches."""
    one, several = observed.loaded
    more_batches = several.counts[Count.BATCHES] - one.counts[Count.BATCHES]
    more_us = several.cpu[Part.CLICKHOUSE] - one.cpu[Part.CLICKHOUSE]
    if more_batches <= 0:
        raise RuntimeError(f"{several.hosts} hosts sent no more batches than one: {more_batches:+.2f} a second")
    return msgspec.structs.replace(
        measured.records,
        source=_source(measured.records.source, "batches", where),
        insert_us=max(0.0, more_us) / more_batches,
    )


def _source(former: str, what: str, where: str) -> str:
    kept = [one for one in former.split("; ") if not one.startswith(f"{what}: ")]
    return "; ".join([*kept, f"{what}: hosts on one machine, {where}"])


def table(former: Stores | Records, found: Stores | Records) -> str:
    return "\n".join(["| Figure | What | in the file | measured |", "|---|---|---|---|", *_rows(former, found)])


def _rows(former: Stores | Records, found: Stores | Records) -> Iterator[str]:
    for name, said in described(type(found)).items():
        before, after = getattr(former, name), getattr(found, name)
        if before != after:
            yield f"| `{name}` | {said} | {before:,.4g} | {after:,.4g} |"
