"""The figures of two arms from ClickHouse equal those that Python counts from the same records."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from analytics.queries.variants import ArmTotals, arm_totals, usual_values
from analytics.request_log.record import Outcome, RequestRecord
from rollouts.evaluation.statistics.grid import LOG_RATIO, bin_of
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


def in_time(r: RequestRecord) -> bool:
    return r.project_id == str(PROJECT) and START <= datetime.fromtimestamp(r.ts / 1e6, UTC) < END


def of_rollout(r: RequestRecord) -> bool:
    return in_time(r) and r.rollout_id == str(ROLLOUT) and r.variant in ("target", "baseline")


def allocated(r: RequestRecord) -> bool:
    """Returns whether the request was not forced, and not allocated by another unit."""
    return not r.alloc_fallback and (r.alloc_unit != 0 or not r.variant)


def cost_units(r: RequestRecord) -> int:
    return int(Decimal(r.cost_usd or 0) * 10**10)


def test_arm_totals__substituted_and_forced__left_out(records: list[RequestRecord]) -> None:
    found = arm_totals(PROJECT, ROLLOUT, START, END)
    for variant in ("target", "baseline"):
        everything = [r for r in records if of_rollout(r) and r.variant == variant]
        rows = [r for r in everything if allocated(r)]
        total, latencies = found[variant], [r.latency_ms for r in rows if answered(r)]
        misses = [r for r in rows if r.cache_status != "hit"]
        assert (total.requests, total.compared) == (len(everything), len(misses))
        assert total.left_out == {
            "cache_hit": len(rows) - len(misses),
            "forced": sum(r.alloc_unit == 0 for r in everything),
            "other_unit": sum(r.alloc_fallback for r in everything),
        }
        assert total.counted == sum(map(counted, misses))
        assert total.errors == sum(counted(r) and error(r) for r in misses)
        assert total.unanswered == sum(total.reasons.values()) > 0
        assert (total.answered, total.priced) == (len(latencies), sum(map(priced, rows)))
        assert total.average_latency_ms == pytest.approx(sum(latencies) / len(latencies))
        assert total.p95_latency_ms == pytest.approx(sorted(latencies)[int(0.95 * len(latencies))], rel=0.05)
        assert total.cost_usd == sum((Decimal(r.cost_usd or 0) for r in everything), Decimal(0))
        assert total.priced_cost_usd == sum((Decimal(r.cost_usd) for r in rows if priced(r)), Decimal(0))
        assert total.unpriced == sum(not r.cost_known for r in everything)


def test_usual_values__one_version_by_bin_and_unanswered_of_all(records: list[RequestRecord]) -> None:
    rows = [r for r in records if in_time(r) and allocated(r)]
    found = usual_values(PROJECT, CONFIG, 1, START, END, log_ratio=LOG_RATIO)
    assert found.latency == Counter(bin_of(r.latency_ms) for r in rows if answered(r))
    assert found.cost == Counter(bin_of(cost_units(r)) for r in rows if priced(r))
    misses = [r for r in rows if r.cache_status != "hit"]
    assert (found.requests, found.unanswered) == (len(misses), sum(map(unanswered, misses)))
    other = usual_values(PROJECT, CONFIG, 2, START, END, log_ratio=LOG_RATIO)
    assert (other.latency, other.cost) == ({}, {})
    assert (other.requests, other.unanswered) == (found.requests, found.unanswered)


def unanswered(r: RequestRecord) -> bool:
    left = r.outcome == Outcome.CANCELLED and (r.ttft_ms == 0 or r.latency_ms > 10_000)
    return r.outcome in (Outcome.ERROR, Outcome.INTERRUPTED) or r.finish_reason == "content_filter" or left


def test_nothing_recorded__zeros() -> None:
    assert arm_totals(PROJECT, UUID(int=7), START, END) == {v: ArmTotals(v) for v in ("target", "baseline")}
