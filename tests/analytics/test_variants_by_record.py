"""The minutes that a rollout is judged by equal those that Python counts from the same records."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from analytics.clickhouse.visible import visible_until
from analytics.queries.variants import arm_totals
from analytics.queries.variants.by_record import (
    recorded_at,
    recorded_minutes,
    recorded_units,
)
from analytics.queries.variants.by_user import MinuteSums, UnitSums, minute_sums, recorded_sums
from analytics.queries.variants.users import cohort_users, user_minutes
from analytics.request_log.record import RequestRecord
from rollouts.evaluation.statistics.grid import LOG_RATIO, bin_of
from tests.analytics.variant_records import (
    ELSEWHERE,
    ENDS,
    LIMITS,
    METRICS,
    MINUTE,
    PROJECT,
    ROLLOUT,
    SIGNALS,
    START,
    at,
    cost_units,
    is_answered,
    is_failed,
    is_judged,
    is_request,
    is_unanswered,
    is_uncompared,
    left_out,
    minute_of,
    record,
    rows,
    stored,
    value_of,
    with_variant,
    within,
)
from tests.factories.analytics import make_entry, store

pytestmark = pytest.mark.usefixtures("clickhouse")


def test_every_end__counted_as_what_it_is(spool: Path) -> None:
    """Each request is in a stage of its own."""
    numbered = list(enumerate(ENDS, start=1))
    made = stored(spool, *(record(1, rollout_stage=number, **end[1]) for number, end in numbered))

    found = {row.stage: row for row in recorded_minutes(rows(long_wait_ms=4000), counted=(), log_ratio=LOG_RATIO)}
    totals = arm_totals(PROJECT, ROLLOUT, START, START + timedelta(minutes=1))["target"]

    for number, (name, _, request, reason, judged, bad) in numbered:
        row = found[number]
        assert row.allocated == 1, name
        assert (row.requests, row.judged, row.errors) == (request, judged, bad), name
        assert (row.unanswered, row.reasons) == (bool(reason), {reason: 1} if reason else {}), name
    left = sum(name == "left late" for name, *_ in ENDS)  # The cancellation is not late without a known usual latency.
    assert totals.unanswered == sum(bool(end[3]) for end in ENDS) - left
    assert totals.compared == sum(end[2] for end in ENDS)
    assert totals.requests == totals.compared + totals.uncompared + sum(totals.left_out.values())
    for name, is_one in SIGNALS.items():
        assert getattr(totals, name) == sum(map(is_one, made)) > 0, name


@pytest.fixture
def records(spool: Path) -> list[RequestRecord]:
    chance = random.Random(12)
    values = []
    for _ in range(1200):
        second = chance.uniform(0, 590)
        cost = f"{Decimal(chance.choice([0, chance.randrange(10**9)])) / 10**10:.10f}"
        common = {
            "variant": chance.choice(["target", "baseline", "baseline"]),
            "rollout_stage": 1 + (second > 300),
            "alloc_unit": chance.randrange(1, 2**64) if chance.random() < 0.2 else chance.randrange(1, 26) * 397,
            # The last of them are recorded minutes after the end of their stage.
            "latency_ms": chance.choice([0, 1, chance.randrange(200_000)]),
            "cost_usd": cost,
            "cost_known": chance.random() < 0.9,
            "cache_read_tokens": chance.choice([0, 0, 1024]),
        }
        kind = chance.choice([*[{}] * 60, *(end[1] for end in ENDS), *ELSEWHERE])
        values.append(record(second, **{**common, **{k: v for k, v in kind.items() if k != "latency_ms"}}))
    return stored(spool, *values)


def test_recorded_minutes__late_rows_too__in_the_minute_they_came_in_under_their_own_stage(
    records: list[RequestRecord],
) -> None:
    groups: dict[tuple[int, int, str], list[RequestRecord]] = defaultdict(list)
    everybody: dict[tuple[int, int, str], list[RequestRecord]] = defaultdict(list)
    for r in within(records, 12):
        groups[minute_of(r), r.rollout_stage, r.variant].append(r)
    for r in with_variant(records, 12):
        everybody[minute_of(r), r.rollout_stage, r.variant].append(r)
    assert any(stage == 1 and minute > MINUTE + 6 for minute, stage, _ in groups)

    found = recorded_minutes(rows(0, 12), counted=(), log_ratio=LOG_RATIO)

    assert [(row.minute, row.stage, row.variant) for row in found] == sorted(everybody)
    for row in found:
        key = row.minute, row.stage, row.variant
        mine = groups[key]
        assert row.allocated == len(mine)
        assert row.left_out == Counter(filter(None, map(left_out, everybody[key])))
        assert {name: getattr(row, name) for name in SIGNALS} == {
            name: sum(map(is_one, mine)) for name, is_one in SIGNALS.items()
        }
        assert (row.requests, row.unanswered) == (sum(map(is_request, mine)), sum(map(is_unanswered, mine)))
        assert sum(row.reasons.values()) == row.unanswered
        assert row.uncompared_unanswered == sum(is_uncompared(r) and r.outcome == "error" for r in mine)
        assert (row.judged, row.errors) == (sum(map(is_judged, mine)), sum(map(is_failed, mine)))
        answered = [r for r in mine if is_answered(r)]
        priced = [r for r in answered if r.cost_known]
        assert row.latency == Counter(bin_of(r.latency_ms) for r in answered)
        assert row.latency_ms == sum(r.latency_ms for r in answered)
        assert row.cost == Counter(bin_of(cost_units(r)) for r in priced)
        assert row.latency_read == Counter(bin_of(r.latency_ms) for r in answered if r.cache_read_tokens)
        assert row.cost_read == Counter(bin_of(cost_units(r)) for r in priced if r.cache_read_tokens)
        assert row.cost_usd == sum((Decimal(r.cost_usd) for r in priced), Decimal(0))


def test_recorded_minutes__queried_minute_by_minute__every_row_exactly_once(records: list[RequestRecord]) -> None:
    at_once = recorded_minutes(rows(0, 15), counted=(), log_ratio=LOG_RATIO)
    one_by_one = [
        row
        for number in range(15)
        for row in recorded_minutes(rows(number, number + 1), counted=(), log_ratio=LOG_RATIO)
    ]
    assert one_by_one == at_once
    assert sum(row.allocated for row in at_once) == len(within(records, 15))


def test_recorded_minutes__counted_while_open__only_what_was_not_known_then(records: list[RequestRecord]) -> None:
    some = {UUID(r.request_id) for r in within(records)[::3]}
    others = [r for r in within(records) if UUID(r.request_id) not in some]
    everything = recorded_minutes(rows(), counted=(), log_ratio=LOG_RATIO)

    found = recorded_minutes(rows(), counted=some, log_ratio=LOG_RATIO)

    assert sum(row.allocated for row in found) == len(others)
    assert sum(row.requests for row in found) == sum(map(is_request, others))
    assert sum(row.unanswered for row in found) == sum(map(is_unanswered, others))
    assert sum(sum(row.reasons.values()) for row in found) == sum(map(is_unanswered, others))
    unchanged = [(row.judged, row.errors, row.latency, row.cost) for row in everything]
    assert [(row.judged, row.errors, row.latency, row.cost) for row in found] == unchanged


def test_recorded_units__seen_before__not_again(records: list[RequestRecord]) -> None:
    first: dict[int, RequestRecord] = {}
    for r in within(records):
        first.setdefault(r.alloc_unit, r)
    expected = Counter((minute_of(r), r.rollout_stage, r.variant) for r in first.values() if minute_of(r) >= MINUTE + 3)

    found = recorded_units(rows(3))

    assert {(row.minute, row.stage, row.variant): row.units for row in found} == expected


def test_recorded_sums__both_arms__as_counted_from_the_records(records: list[RequestRecord]) -> None:
    units: dict[tuple[str, int], list[RequestRecord]] = defaultdict(list)
    for r in within(records, 8):
        units[r.variant, r.alloc_unit].append(r)

    found = recorded_sums(rows(7, 8), limits=LIMITS, log_ratio=LOG_RATIO)

    assert set(found) == {(variant, metric) for variant in ("target", "baseline") for metric in METRICS}
    for (variant, metric), sums in found.items():
        check_sums(sums, metric, [mine for (arm, _), mine in units.items() if arm == variant])


def check_sums(sums: UnitSums | MinuteSums, metric: str, units: Iterable[Sequence[RequestRecord]]) -> None:
    cap = {"latency": LIMITS.latency_cap_ms, "cost": LIMITS.cost_cap}.get(metric, 1.0)
    clusters = [[min(value, cap) for r in mine if (value := value_of(metric, r)) is not None] for mine in units]
    assert sums.requests == sum(map(len, clusters))
    assert sums.requests_squared == sum(len(c) ** 2 for c in clusters)
    assert sums.total == pytest.approx(sum(map(sum, clusters)))
    assert sums.total_squared == pytest.approx(sum(sum(c) ** 2 for c in clusters))
    assert sums.cross == pytest.approx(sum(len(c) * sum(c) for c in clusters))
    assert sums.values_squared == pytest.approx(sum(v * v for c in clusters for v in c))


def test_minute_sums__every_minute__of_its_own_requests_alone(records: list[RequestRecord]) -> None:
    open_before = {UUID(r.request_id) for r in within(records)[::3] if is_unanswered(r)}
    cells: dict[tuple[int, int, str], dict[int, list[RequestRecord]]] = defaultdict(lambda: defaultdict(list))
    for r in within(records, 9, 2):
        cells[minute_of(r), r.rollout_stage, r.variant][r.alloc_unit].append(r)

    found = minute_sums(rows(2, 9), limits=LIMITS, counted=open_before, log_ratio=LOG_RATIO)

    places = [(row.minute, row.stage, row.variant, row.metric) for row in found]
    assert places == sorted((*cell, metric) for cell in cells for metric in METRICS)
    for row in found:
        units = cells[row.minute, row.stage, row.variant]
        if row.metric == "unanswered":
            # Those that were counted while they were open are not counted again.
            units = {unit: [r for r in mine if UUID(r.request_id) not in open_before] for unit, mine in units.items()}
        check_sums(row, row.metric, units.values())
        events: Counter[int] = Counter()
        for unit, mine in units.items():
            events[unit % 10_000] += int(sum(value_of(row.metric, r) or 0 for r in mine))
        assert row.events == ({} if row.metric in ("latency", "cost") else +events)
    assert any(max(row.events.values(), default=0) > 1 for row in found)


@pytest.mark.parametrize("first", [0, 5])
def test_user_minutes__fifth_request_of_the_stage__once_with_the_first_five(
    records: list[RequestRecord], first: int
) -> None:
    before = [0, 30]
    cohorts: dict[tuple[str, int, str, int], list[tuple[int, float]]] = defaultdict(list)
    for r in within(records):
        if r.alloc_unit % 10_000 >= 100 * before[r.rollout_stage - 1]:
            for metric in METRICS:
                if (value := value_of(metric, r)) is not None:
                    cohorts[metric, r.rollout_stage, r.variant, r.alloc_unit].append((minute_of(r), value))
    expected: dict[tuple[int, int, str, str], Counter[int]] = defaultdict(Counter)
    for (metric, stage, variant, _), values in cohorts.items():
        if len(values) >= 5 and values[4][0] >= MINUTE + first:
            total = sum(value for _, value in values[:5])
            key = bin_of(total / 5) if metric in ("latency", "cost") else int(total)
            expected[values[4][0], stage, variant, metric][key] += 1
    assert len({metric for *_, metric in expected}) == len(METRICS)

    found = user_minutes(rows(first), weights_before=before, slow_bin=LIMITS.slow_bin, log_ratio=LOG_RATIO)

    assert {(row.minute, row.stage, row.variant, row.metric): row.users for row in found} == expected


@pytest.mark.parametrize(("stage", "from_weight"), [(1, 0), (2, 30)])
def test_cohort_users__all_requests_of_the_stage__each_user_once(
    records: list[RequestRecord], stage: int, from_weight: int
) -> None:
    values: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for r in within(records, 8):
        if r.rollout_stage == stage and r.alloc_unit % 10_000 >= 100 * from_weight:
            for metric in (*METRICS, "eased"):
                if (value := value_of(metric, r)) is not None:
                    cap = {"latency": LIMITS.latency_cap_ms, "cost": LIMITS.cost_cap}.get(metric, 1.0)
                    values[r.variant, metric, r.alloc_unit].append(min(value, cap))
    expected: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for (variant, metric, _), mine in values.items():
        if len(mine) >= 5:
            mean = sum(mine) / len(mine)
            key = bin_of(mean) if metric in ("latency", "cost") else round(1000 * sum(mine) / len(mine))
            expected[variant, metric][key] += 1
    assert {metric for _, metric in expected} == {*METRICS, "eased"}

    found = cohort_users(rows(7, 8), stage=stage, from_weight=from_weight, least=5, limits=LIMITS, log_ratio=LOG_RATIO)

    assert {(row.variant, row.metric): row.users for row in found} == expected


def test_recorded_at__rows_that_are_there__their_times(records: list[RequestRecord]) -> None:
    [here, *_] = within(records)
    came = datetime.fromtimestamp(here.ts / 1e6, UTC)
    arrived = {UUID(here.request_id): came, uuid4(): came + timedelta(seconds=3)}
    found = recorded_at(PROJECT, arrived)
    assert {key: int(value.timestamp() * 1000) for key, value in found.items()} == {UUID(here.request_id): at(here)}
    assert recorded_at(PROJECT, {}) == {}


def test_recorded__by_the_store__between_before_and_after(spool: Path) -> None:
    before = visible_until()
    [entry] = [make_entry(**record(0))]
    store(spool, entry)
    [found] = recorded_at(PROJECT, {UUID(entry.record.request_id): START}).values()
    assert before <= found <= visible_until()


def test_nothing_recorded__no_rows() -> None:
    nobody = rows(rollout=UUID(int=7))
    assert recorded_minutes(nobody, counted=(), log_ratio=LOG_RATIO) == []
    assert recorded_units(nobody) == []
    assert recorded_sums(nobody, limits=LIMITS, log_ratio=LOG_RATIO) == {}
    assert minute_sums(nobody, limits=LIMITS, counted=(), log_ratio=LOG_RATIO) == []
    assert user_minutes(nobody, weights_before=[0], slow_bin=1, log_ratio=LOG_RATIO) == []
    assert cohort_users(nobody, stage=1, from_weight=0, least=5, limits=LIMITS, log_ratio=LOG_RATIO) == []
