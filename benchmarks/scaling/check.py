from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.scaling.model import Model
from benchmarks.scaling.observation import Observed
from benchmarks.scaling.readings import Count, Level, Part, Use


@dataclass(frozen=True, slots=True)
class Compared:
    model: float | None
    seen: float


def compare(model: Model, use: Use) -> dict[str, Compared]:
    hosts, rate, stores = use.hosts, use.rate, model.measured.stores
    of_requests = {
        Part.WEB: model.web_us * rate,
        Part.SHIPPERS: model.measured.records.shipper_us * rate,
        Part.OTHERS: None,
        Part.CLICKHOUSE: model.row_us * rate + model.batches_us(hosts),
        Part.REDIS: model.redis_us(rate, hosts),
        Part.POSTGRESQL: hosts * stores.postgresql_us,
    }
    cpu = {
        f"{part}, µs a request": Compared(None if said is None else said / rate, use.cpu[part] / rate)
        for part, said in of_requests.items()
    }
    return cpu | {
        "batches a second": Compared(hosts * stores.batches, use.counts[Count.BATCHES]),
        Level.POSTGRESQL.value: Compared(hosts * stores.postgresql_connections, use.levels[Level.POSTGRESQL]),
        Level.REDIS.value: Compared(hosts * stores.redis_connections, use.levels[Level.REDIS]),
    }


def table(model: Model, observed: Observed, where: str) -> str:
    found = [compare(model, use) for use in observed.loaded]
    heads = [f"{use.hosts} host{'s' * (use.hosts > 1)}" for use in observed.loaded]
    lines = [
        "| Of | " + " | ".join(f"{head}: model | seen | seen / model" for head in heads) + " |",
        "|---" * (1 + 3 * len(heads)) + "|",
        *_rows(found),
    ]
    rates = " and ".join(f"{use.rate:.1f}" for use in observed.loaded)
    return "\n".join([*lines, "", f"{rates} requests a second in all; {where}"])


def _rows(found: Sequence[dict[str, Compared]]) -> Iterator[str]:
    for name in found[0]:
        cells = [cell for one in found for cell in _cells(one[name])]
        yield f"| {name} | {' | '.join(cells)} |"


def _cells(one: Compared) -> tuple[str, str, str]:
    if not one.model:
        return "-", _figure(one.seen), "-"
    return _figure(one.model), _figure(one.seen), f"{one.seen / one.model:.2f}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def idle_table(observed: Observed) -> str:
    one, several = observed.idle
    lines = [f"| Idle, a second | 1 host | {several.hosts} hosts | each further host |", "|---|---|---|---|"]
    figures: list[tuple[str, float, float]] = [
        *((f"{part}, µs", one.cpu[part], several.cpu[part]) for part in Part),
        *((str(count), one.counts[count], several.counts[count]) for count in Count),
    ]
    for name, first, all_hosts in figures:
        further = (all_hosts - first) / (several.hosts - 1)
        lines.append(f"| {name} | {first:,.4g} | {all_hosts:,.4g} | {further:,.4g} |")
    return "\n".join(lines)
