"""The figures of two arms from ClickHouse equal those that Python counts from the same records."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from analytics.queries.variants import ArmTotals, arm_totals, usual_values
from analytics.queries.variants.by_arrival import arm_minutes, new_units, unit_sums
from analytics.queries.variants.units import UnitLimits
from analytics.request_log.record import Outcome, RequestRecord
from rollouts.evaluation.grid import LOG_RATIO, bin_of
from tests.factories.analytics import make_entry, store

pytestmark = pytest.mark.usefixtures("clickhouse")

START = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
END = START + timedelta(minutes=10)
PROJECT, ROLLOUT, CONFIG = uuid4(), uuid4(), uuid4()


def record(second: float, **values: Any) -> dict[str, Any]:
    ts = int((START + timedelta(seconds=second)).timestamp() * 1_000_000)
    defaults = {
        "ts": ts,
        "project_id": str(PROJECT),
        "prompt_config_id": str(CONFIG),
        "prompt_version": 1,
        "rollout_id": str(ROLLOUT),
        "rollout_stage": 1,
        "variant": "baseline",
        "alloc_unit": 2**63 + 5,
    }
    return {**defaults, **values}


# The provider refused a request that the gateway let through: with another prompt it might have been accepted.
PROVIDERS_OWN = ("provider_rejected", "context_length_exceeded", "content_filter")
KINDS: list[dict[str, Any]] = [
    *([{}] * 12),
    {"outcome": Outcome.ERROR, "status_code": 503},
    {"outcome": Outcome.ERROR, "status_code": 200},
    {"outcome": Outcome.ERROR, "status_code": 429},
    {"outcome": Outcome.ERROR, "status_code": 400, "error_code": "invalid_value"},
    {"outcome": Outcome.ERROR, "status_code": 400, "error_code": "provider_rejected"},
    {"outcome": Outcome.ERROR, "status_code": 400, "error_code": "context_length_exceeded"},
    {"outcome": Outcome.ERROR, "status_code": 400, "error_code": "content_filter"},
    {"outcome": Outcome.CANCELLED, "status_code": 499},
    {"outcome": Outcome.INTERRUPTED, "status_code": 0},
    {"finish_reason": "content_filter"},
    {"cache_status": "hit"},
    {"cost_known": False, "cost_usd": ""},
    {"alloc_fallback": True},
    {"alloc_unit": 0},
    {"variant": ""},
    {"rollout_id": str(uuid4())},
    {"project_id": str(uuid4())},
]


@pytest.fixture
def records(spool: Path) -> list[RequestRecord]:
    chance = random.Random(11)
    entries = []
    for _ in range(900):
        second = chance.uniform(-60, 660)
        cost = f"{Decimal(chance.choice([0, chance.randrange(10**9)])) / 10**10:.10f}"
        values = {
            "variant": chance.choice(["target", "baseline", "baseline"]),
            "rollout_stage": 1 + (second > 300),
            "alloc_unit": chance.randrange(1, 2**64) if chance.random() < 0.3 else chance.randrange(1, 40),
            "latency_ms": chance.choice([0, 1, chance.randrange(90_000)]),
            "cost_usd": cost,
            **chance.choice(KINDS),
        }
        entries.append(make_entry(**record(second, **values)))
    store(spool, *entries)
    return [entry.record for entry in entries]


def error(r: RequestRecord) -> bool:
    server = r.status_code < 400 or r.status_code >= 500 or r.error_code in PROVIDERS_OWN
    broken = r.outcome in (Outcome.ERROR, Outcome.INTERRUPTED) and server
    return broken or r.finish_reason == "content_filter"


def counted(r: RequestRecord) -> bool:
    return r.outcome == Outcome.SUCCESS or (r.outcome != Outcome.CANCELLED and error(r))


def answered(r: RequestRecord) -> bool:
    return r.outcome == Outcome.SUCCESS and r.cache_status != "hit"


def priced(r: RequestRecord) -> bool:
    return answered(r) and r.cost_known


def minute_of(r: RequestRecord) -> int:
    return r.ts // 60_000_000


def in_arm(r: RequestRecord) -> bool:
    mine = r.project_id == str(PROJECT) and r.rollout_id == str(ROLLOUT) and r.variant in ("target", "baseline")
    time = START <= datetime.fromtimestamp(r.ts / 1e6, UTC) < END
    return mine and r.alloc_unit != 0 and time


def allocated(r: RequestRecord) -> bool:
    return in_arm(r) and not r.alloc_fallback


def cost_units(r: RequestRecord) -> int:
    return int(Decimal(r.cost_usd or 0) * 10**10)


def test_arm_minutes__all_kinds__as_counted_from_the_records(records: list[RequestRecord]) -> None:
    groups: dict[tuple[int, int, str], list[RequestRecord]] = defaultdict(list)
    for r in filter(allocated, records):
        groups[minute_of(r), r.rollout_stage, r.variant].append(r)

    found = arm_minutes(PROJECT, ROLLOUT, START, END, log_ratio=LOG_RATIO)

    assert [(row.minute, row.stage, row.variant) for row in found] == sorted(groups)
    for row in found:
        rows = groups[row.minute, row.stage, row.variant]
        assert row.allocated == len(rows)
        assert row.requests == sum(map(counted, rows))
        assert row.errors == sum(counted(r) and error(r) for r in rows)
        assert row.latency == Counter(bin_of(r.latency_ms) for r in rows if answered(r))
        assert row.latency_ms == sum(r.latency_ms for r in rows if answered(r))
        assert row.cost == Counter(bin_of(cost_units(r)) for r in rows if priced(r))
        assert row.cost_usd == sum((Decimal(r.cost_usd) for r in rows if priced(r)), Decimal(0))


def test_new_units__seen_before__not_again(records: list[RequestRecord]) -> None:
    first: dict[int, RequestRecord] = {}
    for r in sorted(filter(allocated, records), key=lambda r: r.ts):
        first.setdefault(r.alloc_unit, r)
    since = int(START.timestamp()) // 60 + 3
    expected = Counter((minute_of(r), r.rollout_stage, r.variant) for r in first.values() if minute_of(r) >= since)

    found = new_units(PROJECT, ROLLOUT, START, END, since=since)

    assert {(row.minute, row.stage, row.variant): row.units for row in found} == expected


def test_arm_totals__substituted_included__forced_not(records: list[RequestRecord]) -> None:
    found = arm_totals(PROJECT, ROLLOUT, START, END)
    for variant in ("target", "baseline"):
        rows = [r for r in records if in_arm(r) and r.variant == variant]
        total, latencies = found[variant], [r.latency_ms for r in rows if answered(r)]
        misses = [r for r in rows if r.cache_status != "hit"]
        assert (total.requests, total.cache_hits) == (len(rows), len(rows) - len(misses))
        assert total.counted == sum(map(counted, misses))
        assert total.errors == sum(counted(r) and error(r) for r in misses)
        assert total.unanswered == sum(total.reasons.values()) > 0
        assert total.substituted == sum(r.alloc_fallback for r in rows) > 0
        assert (total.answered, total.priced) == (len(latencies), sum(map(priced, rows)))
        assert total.average_latency_ms == pytest.approx(sum(latencies) / len(latencies))
        assert total.p95_latency_ms == pytest.approx(sorted(latencies)[int(0.95 * len(latencies))], rel=0.05)
        assert total.cost_usd == sum((Decimal(r.cost_usd or 0) for r in rows), Decimal(0))
        assert total.priced_cost_usd == sum((Decimal(r.cost_usd) for r in rows if priced(r)), Decimal(0))
        assert total.unpriced == sum(not r.cost_known for r in rows)


def test_unit_sums__clustered_requests__as_counted_from_the_records(records: list[RequestRecord]) -> None:
    limits = UnitLimits(latency_cap_ms=50_000.0, slow_bin=bin_of(30_000), cost_cap=5e8)
    units: dict[int, list[RequestRecord]] = defaultdict(list)
    for r in filter(allocated, records):
        if r.variant == "baseline":
            units[r.alloc_unit].append(r)

    def values(name: str, r: RequestRecord) -> list[float]:
        if name == "errors":
            return [float(error(r))] if counted(r) else []
        if name == "cost":
            return [min(cost_units(r), 5e8)] if priced(r) else []
        if not answered(r):
            return []
        return [min(r.latency_ms, 50_000.0)] if name == "latency" else [float(bin_of(r.latency_ms) > limits.slow_bin)]

    found = unit_sums(PROJECT, ROLLOUT, START, END, limits=limits, log_ratio=LOG_RATIO)

    assert set(found) == {"errors", "slow", "latency", "cost"}
    for name, sums in found.items():
        clusters = [[value for r in rows for value in values(name, r)] for rows in units.values()]
        assert sums.requests == sum(map(len, clusters))
        assert sums.requests_squared == sum(len(c) ** 2 for c in clusters)
        assert sums.total == pytest.approx(sum(map(sum, clusters)))
        assert sums.total_squared == pytest.approx(sum(sum(c) ** 2 for c in clusters))
        assert sums.cross == pytest.approx(sum(len(c) * sum(c) for c in clusters))
        assert sums.values_squared == pytest.approx(sum(v * v for c in clusters for v in c))


def test_usual_values__one_version_of_the_config__by_bin(records: list[RequestRecord]) -> None:
    rows = [
        r for r in records if r.project_id == str(PROJECT) and START <= datetime.fromtimestamp(r.ts / 1e6, UTC) < END
    ]
    found = usual_values(PROJECT, CONFIG, 1, START, END, log_ratio=LOG_RATIO)
    assert found.latency == Counter(bin_of(r.latency_ms) for r in rows if answered(r))
    assert found.cost == Counter(bin_of(cost_units(r)) for r in rows if priced(r))
    assert usual_values(PROJECT, CONFIG, 2, START, END, log_ratio=LOG_RATIO).latency == {}


def test_nothing_recorded__no_rows_and_zeros() -> None:
    nobody = UUID(int=7)
    assert arm_minutes(PROJECT, nobody, START, END, log_ratio=LOG_RATIO) == []
    assert new_units(PROJECT, nobody, START, END, since=0) == []
    assert arm_totals(PROJECT, nobody, START, END) == {v: ArmTotals(v) for v in ("target", "baseline")}
    limits = UnitLimits(latency_cap_ms=1.0, slow_bin=1, cost_cap=1.0)
    assert unit_sums(PROJECT, nobody, START, END, limits=limits, log_ratio=LOG_RATIO) == {}
