from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from benchmarks.scaling.figures import Measured, Prices, described
from benchmarks.scaling.inputs import Mix, Shape
from benchmarks.scaling.model import Elastic, Fixed, Layout, Model

_SPOOL_GB = 10.0  # The volume of a web host in deploy/kubernetes.
STEPS = ((1.0, True), (100.0, True), (100.0, False), (10_000.0, False), (1_000_000.0, False))
_VARIANT_RATE = 10_000.0
VARIANTS: Mapping[str, dict[str, float]] = {
    "as above": {},
    "no texts kept": {"texts": 0},
    "kept for a year": {"retention_days": 365},
    "no streams": {"streams": 0},
    "all streams, of 500 chunks": {"streams": 1, "chunks": 500},
    "answers take a minute": {"seconds": 60},
    "requests of 60 KB": {"request_bytes": 60_000},
    "no limits": {"limits": 0},
    "each session has a budget": {"sessions": 1},
}
REMEDIES: Mapping[Elastic | Fixed, str] = {
    Elastic.WEB: "more hosts",
    Elastic.ANSWERS: "more hosts, or `WEB_CONNECTIONS`",
    Elastic.REDIS: "a larger core; then a cluster, and further primaries",
    Elastic.BUDGETS: "further primaries; budgets of users or keys in place of sessions",
    Elastic.CLICKHOUSE: "a larger server; then further shards",
    Elastic.DISK: "fewer days, no texts; further shards",
    Elastic.MACHINE: "ClickHouse on a server of its own; then three hosts",
    Fixed.HOSTS: "another installation; hosts of more workers",
    Fixed.BATCHES: "hosts of more workers, which have one shipper; another installation",
    Fixed.POSTGRESQL: "a larger server; another installation",
    Fixed.PROJECT_LIMITS: "several projects in its place, or limits of its keys' providers",
    Fixed.PROJECT_ROWS: "several projects in its place",
}


def page(
    measured: Measured, prices: Prices, mix: Mix, shape: Shape, steps: Sequence[tuple[float, bool]] = STEPS
) -> dict[str, str]:
    model = Model(measured, mix, shape)
    layouts = [model.plan(rate, single=single) for rate, single in steps]
    return {
        "layouts": _table(_LAYOUT, [_layout(model, one, prices) for one in layouts]),
        "flows": _table(_FLOW, [_flow(model, one) for one in layouts]),
        "bottlenecks": _table(_BOTTLENECK, [_bottleneck(model, one) for one in layouts]),
        "installation": _table(_LIMIT, list(_limits(model, layouts[-1]))),
        "dollars": _table(("Part", *(_name(one) for one in layouts)), list(_dollars(model, layouts, prices))),
        "variants": _table(_VARIANT, [_variant(model, name, prices) for name in VARIANTS]),
        "needs": _table(_NEED, list(_needs(model))),
        "inputs": _table(("Part", "Figure", "What", "Value"), list(_inputs(measured))),
        "sources": _sources(measured),
        "assumptions": _table(("Of", "Assumption", "What", "Value"), list(_assumptions(mix, shape, prices))),
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([_row(head), "|---" * len(head) + "|", *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _name(layout: Layout) -> str:
    return f"{layout.rate:,.0f}" + (", one machine" if layout.single else "")


_LAYOUT = (
    "Requests a second", "Installations", "Web hosts", "Answers under way of a host", "Redis primaries",
    "PostgreSQL: connections, pool", "ClickHouse: shards, replicas, cores of each", "Dollars a month",
)  # fmt: skip


def _layout(model: Model, layout: Layout, prices: Prices) -> list[str]:
    alone, copies = layout.single, model.shape.replicas
    under_way = model.in_flight(layout.rate) / layout.installations / layout.hosts
    return [
        _name(layout),
        f"{layout.installations:,}",
        f"{layout.hosts:,}",
        _figure(under_way),
        "embedded" if alone else f"{layout.primaries:,}",
        "SQLite" if alone else f"{model.connections(layout):,.0f}, {model.pool(layout):,}",
        "embedded" if alone else f"{layout.shards:,}, {copies}, {layout.shard_cores}",
        f"{sum(model.dollars(layout, prices).values()):,.0f}",
    ]


_FLOW = (
    "Requests a second", "Request log, TB of each replica", "Redis, GB", "Clients, Gbit/s", "Records, Gbit/s",
    "Records that wait in a host's volume of 10 GB while ClickHouse is away",
)  # fmt: skip


def _flow(model: Model, layout: Layout) -> list[str]:
    seconds = _SPOOL_GB * 1e9 * layout.hosts * layout.installations / (layout.rate * model.spool_bytes)
    return [
        _name(layout),
        _figure(model.stored_gb(layout.rate) / 1000),
        _figure(model.redis_gb(layout.rate)),
        _figure(layout.rate * (model.mix.request_bytes + model.answer_bytes) * 8e-9),
        _figure(layout.rate * model.spool_bytes * 8e-9),
        f"of {_time(seconds)}",
    ]


_BOTTLENECK = ("Requests a second", "Full first", "at", "What is done", "Then", "at")


def _bottleneck(model: Model, layout: Layout) -> list[str]:
    (first, rate), (second, later), *_ = model.ceilings(layout).items()
    return [_name(layout), first, f"{_round(rate)}/s", REMEDIES[first], second, f"{_round(later)}/s"]


_LIMIT = ("What an installation has once", "used up at", "What is done")


def _limits(model: Model, layout: Layout) -> Iterator[list[str]]:
    for one, rate in model.limits_of_an_installation(layout).items():
        whose = " of the project" if one in (Fixed.PROJECT_LIMITS, Fixed.PROJECT_ROWS) else ""
        yield [one, f"{_round(rate)} requests a second{whose}", REMEDIES[one]]


def _dollars(model: Model, layouts: Sequence[Layout], prices: Prices) -> Iterator[list[str]]:
    costs = [model.dollars(one, prices) for one in layouts]
    for part in costs[-1]:
        yield [part, *(f"{cost.get(part, 0):,.0f}" for cost in costs)]
    millions = [one.rate * model.mix.mean * 730 * 3600 / 1e6 for one in layouts]
    yield [
        "together, a million requests",
        *(f"{sum(c.values()) / m:,.2f}" for c, m in zip(costs, millions, strict=True)),
    ]


_VARIANT = (
    "10,000 requests a second",
    "Web hosts",
    "Redis primaries",
    "Shards",
    "Request log, TB",
    "Dollars a month",
    "Full first",
)


def _variant(model: Model, name: str, prices: Prices) -> list[str]:
    asked = Model(model.measured, msgspec.structs.replace(model.mix, **VARIANTS[name]), model.shape)
    layout = asked.plan(_VARIANT_RATE)
    number = layout.installations
    return [
        name,
        f"{layout.hosts * number:,}",
        f"{layout.primaries * number:,}",
        f"{layout.shards * number:,}",
        _figure(asked.stored_gb(_VARIANT_RATE) / 1000),
        f"{sum(asked.dollars(layout, prices).values()):,.0f}",
        next(iter(asked.ceilings(layout))),
    ]


_NEED = ("Of", "Takes", "With")


def _needs(model: Model) -> Iterator[list[str]]:
    web, records, stores, mix = model.measured.web, model.measured.records, model.measured.stores, model.mix
    of_chunks = f"{web.chunk_us * mix.chunks * mix.streams:,.0f} µs for chunks"
    of_texts = f"{records.text_us * model.text_kb:,.0f} µs, {records.text_bytes * model.text_kb:,.0f} bytes for texts"
    limits = f"{stores.redis_limits_commands:.1f} commands, {stores.redis_limits_bytes:,.0f} bytes"
    batches = f"{stores.batches:.2f} batches a second"
    asked = (
        f"{stores.postgresql_connections:.0f} connections, {stores.postgresql_transactions:.1f} transactions a second"
    )
    told = f"{stores.redis_connections:.0f} connections, {stores.redis_host_commands:.0f} commands a second"
    yield ["a request: web worker", _cpu(model.web_us), of_chunks]
    yield ["a request: shipper", _cpu(records.shipper_us), f"{model.spool_bytes:,.0f} bytes in the spool"]
    yield ["a request: ClickHouse", f"{_cpu(model.row_us)}, {model.row_bytes:,.0f} bytes of disk", of_texts]
    yield ["a request with limits: Redis", _cpu(stores.redis_limits_us), limits]
    yield ["a host: each shard of ClickHouse", f"{_cpu(model.batches_us(1))} a second", batches]
    yield ["a host: PostgreSQL", f"{_cpu(stores.postgresql_us)} a second", asked]
    yield ["a host: Redis", f"{_cpu(model.redis_us(0, 1))} a second", told]


def _cpu(microseconds: float) -> str:
    return f"{microseconds:,.0f} µs of CPU"


def _inputs(measured: Measured) -> Iterator[list[str]]:
    for part in (measured.web, measured.records, measured.stores):
        for name, said in described(type(part)).items():
            yield [type(part).__name__.lower(), f"`{name}`", said, f"{getattr(part, name):,g}"]


def _sources(measured: Measured) -> str:
    parts = (measured.web, measured.records, measured.stores)
    return "\n".join(f"- {type(part).__name__.lower()}: {part.source}" for part in parts)


def _assumptions(mix: Mix, shape: Shape, prices: Prices) -> Iterator[list[str]]:
    for what, part in (("requests", mix), ("servers", shape), ("prices", prices)):
        for name, said in described(type(part)).items():
            yield [what, f"`{name}`", said, f"{getattr(part, name):,g}"]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _round(rate: float) -> str:
    """Keeps two digits: the model is not more exact."""
    return f"{float(f'{rate:.2g}'):,.0f}"


def _time(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"
