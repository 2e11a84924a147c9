"""The minutes that the second formula reads equal those that Python counts from the same records."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from analytics.contracts import Outcome, RequestRecord
from analytics.queries.variants import arm_totals
from analytics.queries.variants.by_record import (
    Recorded,
    recorded_at,
    recorded_minutes,
    recorded_sums,
    recorded_units,
    visible_until,
)
from analytics.queries.variants.units import UnitLimits
from analytics.queries.variants.users import user_minutes
from core.errors import ApplicationError, ValidationError
from gateway.errors import (
    BudgetExceededError,
    CredentialUnreadableError,
    GuardrailError,
    InternalError,
    LowQualityError,
    ModelNotFoundError,
    ProviderFailedError,
    ProviderRejectedError,
    ProviderUnavailableError,
    RateLimitedError,
    UnsupportedError,
)
from prompts.errors import InvalidVariableError, MissingVariableError, UnknownVariableError
from rollouts.evaluation.grid import LOG_RATIO, bin_of
from tests.factories.analytics import make_entry, store, store_as_of_then

pytestmark = pytest.mark.usefixtures("clickhouse")

START = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
PROJECT, ROLLOUT = uuid4(), uuid4()
MINUTE = int(START.timestamp()) // 60
LIMITS = UnitLimits(latency_cap_ms=50_000.0, slow_bin=bin_of(30_000), cost_cap=5e8)


def record(second: float, **values: Any) -> dict[str, Any]:
    """Returns a request that came so many seconds after the start."""
    defaults = {
        "ts": int((START + timedelta(seconds=second)).timestamp() * 1_000_000),
        "project_id": str(PROJECT),
        "rollout_id": str(ROLLOUT),
        "rollout_stage": 1,
        "variant": "target",
        "alloc_unit": 2**63 + 5,
        "ttft_ms": 7,
    }
    return {**defaults, **values}


def failed(error: ApplicationError, **values: Any) -> dict[str, Any]:
    fields = {"status_code": error.status, "error_type": error.type, "error_code": error.code}
    return {"outcome": Outcome.ERROR, "provider": "", **fields, **values}


def refused(error: type[ApplicationError], code: str, **values: Any) -> dict[str, Any]:
    return failed(error("no", code=code), **values)


def stored(spool: Path, *values: dict[str, Any]) -> list[RequestRecord]:
    entries = [make_entry(**one) for one in values]
    store_as_of_then(spool, *entries)
    return [entry.record for entry in entries]


def rows(first: int = 0, last: int = 10, *, rollout: UUID = ROLLOUT, **values: Any) -> Recorded:
    """Returns the rows recorded in these minutes after the start."""
    start, end = (START + timedelta(minutes=number) for number in (first, last))
    return Recorded(PROJECT, rollout, START, start, end, **values)


ENDS: list[tuple[str, dict[str, Any], bool, str, bool, bool]] = [
    # Each entry has the end of a request, its row, and whether it is a request, why it is unanswered, whether it is
    # judged, and whether it failed.
    ("answered", {}, True, "", True, False),
    ("answered, cut at max_tokens", {"finish_reason": "length"}, True, "", True, False),
    ("variable missing", failed(MissingVariableError("name", "is required")), True, "missing_variable", False, False),
    ("variable wrong", failed(InvalidVariableError("name", "is no text")), True, "missing_variable", False, False),
    ("variable unknown", failed(UnknownVariableError("name", "is not used")), True, "missing_variable", False, False),
    ("personal data", refused(GuardrailError, "pii_detected"), False, "", False, False),
    ("injection", refused(GuardrailError, "prompt_injection"), False, "", False, False),
    ("topic of the request", refused(GuardrailError, "blocked_topic"), False, "", False, False),
    ("too long", refused(GuardrailError, "prompt_too_long"), True, "guardrail", False, False),
    ("tool of the request", refused(GuardrailError, "blocked_tool"), True, "guardrail", False, False),
    (
        "topic of the answer",
        refused(GuardrailError, "blocked_topic", provider="openai"),
        True,
        "guardrail",
        False,
        False,
    ),
    ("tool of the answer", refused(GuardrailError, "blocked_tool", provider="openai"), True, "guardrail", False, False),
    ("graded too low", failed(LowQualityError("no"), provider="openai"), True, "low_quality", False, False),
    ("no such model", failed(ModelNotFoundError("no")), True, "model_not_found", False, False),
    ("no such model there", failed(ModelNotFoundError("no"), provider="openai"), True, "model_not_found", False, False),
    ("limit of requests", failed(RateLimitedError("no")), False, "", False, False),
    ("limit of tokens", refused(RateLimitedError, "tokens_per_minute"), True, "other", False, False),
    ("month's budget", failed(BudgetExceededError("no")), False, "", False, False),
    ("session's budget", refused(BudgetExceededError, "session_budget_exceeded"), False, "", False, False),
    ("from the cache", {"cache_status": "hit"}, False, "", False, False),
    ("no such parameter", failed(UnsupportedError("no"), provider="openai"), True, "provider_refused", False, False),
    ("rejected", failed(ProviderRejectedError("no"), provider="openai"), True, "provider_refused", True, True),
    ("too long there", refused(ValidationError, "context_length_exceeded"), True, "provider_refused", True, True),
    ("filtered before", refused(ValidationError, "content_filter"), True, "provider_refused", True, True),
    ("filtered after", {"finish_reason": "content_filter"}, True, "provider_refused", True, True),
    ("provider failed", failed(ProviderFailedError("no"), provider="openai"), True, "provider_failed", True, True),
    ("provider away", failed(ProviderUnavailableError("no"), provider="openai"), True, "provider_failed", True, True),
    ("timeout", refused(ProviderUnavailableError, "provider_timeout"), True, "provider_failed", True, True),
    ("no quota", refused(ProviderUnavailableError, "insufficient_quota"), True, "provider_failed", True, True),
    ("credentials", failed(CredentialUnreadableError("no")), True, "provider_failed", True, True),
    (
        "stream broke",
        failed(ProviderUnavailableError("no"), status_code=200, provider="openai"),
        True,
        "provider_failed",
        True,
        True,
    ),
    ("gateway failed", failed(InternalError("no")), True, "other", True, True),
    ("client's own fault", failed(ValidationError("no")), True, "other", False, False),
    ("worker stopped", {"outcome": Outcome.INTERRUPTED, "status_code": 500}, True, "interrupted", True, True),
    (
        "left before the first output",
        {"outcome": Outcome.CANCELLED, "status_code": 499, "ttft_ms": 0},
        True,
        "client_left",
        False,
        False,
    ),
    (
        "left late",
        {"outcome": Outcome.CANCELLED, "status_code": 499, "latency_ms": 4001},
        True,
        "client_left",
        False,
        False,
    ),
    ("left soon", {"outcome": Outcome.CANCELLED, "status_code": 499, "latency_ms": 4000}, True, "", False, False),
]


def test_every_end__counted_as_what_it_is(spool: Path) -> None:
    """Each request is in a stage of its own."""
    numbered = list(enumerate(ENDS, start=1))
    stored(spool, *(record(1, rollout_stage=number, **end[1]) for number, end in numbered))

    found = {row.stage: row for row in recorded_minutes(rows(long_wait_ms=4000), counted=(), log_ratio=LOG_RATIO)}
    totals = arm_totals(PROJECT, ROLLOUT, START, START + timedelta(minutes=1))["target"]

    for number, (name, _, request, reason, judged, bad) in numbered:
        row = found[number]
        assert row.allocated == 1, name
        assert (row.requests, row.judged, row.errors) == (request, judged, bad), name
        assert (row.unanswered, row.reasons) == (bool(reason), {reason: 1} if reason else {}), name
    left = sum(name == "left late" for name, *_ in ENDS)  # The cancellation is not late without a known usual latency.
    assert totals.unanswered == sum(bool(end[3]) for end in ENDS) - left
    assert totals.requests == totals.cache_hits + totals.left_out + sum(end[2] for end in ENDS)


ELSEWHERE: list[dict[str, Any]] = [
    {"alloc_fallback": True},
    {"alloc_unit": 0},
    {"variant": ""},
    {"rollout_id": str(uuid4())},
    {"project_id": str(uuid4())},
]


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
        }
        kind = chance.choice([*[{}] * 60, *(end[1] for end in ENDS), *ELSEWHERE])
        values.append(record(second, **{**common, **{k: v for k, v in kind.items() if k != "latency_ms"}}))
    return stored(spool, *values)


def at(r: RequestRecord) -> int:
    """Returns the time at which a row was recorded, in Unix milliseconds."""
    return (r.ts + r.latency_ms * 1000) // 1000


def minute_of(r: RequestRecord) -> int:
    return at(r) // 60_000


def within(records: Iterable[RequestRecord], last: int = 10, first: int = -99) -> list[RequestRecord]:
    def belongs(r: RequestRecord) -> bool:
        mine = r.project_id == str(PROJECT) and r.rollout_id == str(ROLLOUT) and r.variant in ("target", "baseline")
        return mine and r.alloc_unit != 0 and not r.alloc_fallback and first <= minute_of(r) - MINUTE < last

    return sorted(filter(belongs, records), key=lambda r: (at(r), r.ts, r.request_id))


def is_hit(r: RequestRecord) -> bool:
    return r.cache_status == "hit"


def is_request(r: RequestRecord) -> bool:
    limited = r.error_code in ("requests_per_minute", "monthly_budget_exceeded", "session_budget_exceeded")
    texts = r.error_code in ("pii_detected", "prompt_injection", "blocked_topic") and not r.provider
    return not (is_hit(r) or limited or texts)


def is_unanswered(r: RequestRecord, long_wait_ms: float = 10_000) -> bool:
    left = r.outcome == Outcome.CANCELLED and (not r.ttft_ms or r.latency_ms > long_wait_ms)
    bad = r.outcome in (Outcome.ERROR, Outcome.INTERRUPTED) or r.finish_reason == "content_filter"
    return is_request(r) and (left or bad)


def is_failed(r: RequestRecord) -> bool:
    codes = ("provider_rejected", "context_length_exceeded", "content_filter")
    server = not 400 <= r.status_code < 500 or r.error_code in codes
    bad = r.outcome in (Outcome.ERROR, Outcome.INTERRUPTED) and server
    return not is_hit(r) and (bad or r.finish_reason == "content_filter")


def is_judged(r: RequestRecord) -> bool:
    return not is_hit(r) and (r.outcome == Outcome.SUCCESS or is_failed(r))


def is_answered(r: RequestRecord) -> bool:
    return r.outcome == Outcome.SUCCESS and not is_hit(r)


def cost_units(r: RequestRecord) -> int:
    return int(Decimal(r.cost_usd or 0) * 10**10)


def value_of(metric: str, r: RequestRecord) -> float | None:
    """Returns the value of a request in a metric, or None when the metric leaves it out."""
    if metric == "unanswered":
        return float(is_unanswered(r)) if is_request(r) else None
    if metric == "errors":
        return float(is_failed(r)) if is_judged(r) else None
    if not is_answered(r) or (metric == "cost" and not r.cost_known):
        return None
    if metric == "slow":
        return float(bin_of(r.latency_ms) > LIMITS.slow_bin)
    return float(r.latency_ms) if metric == "latency" else float(cost_units(r))


METRICS = ("unanswered", "errors", "slow", "latency", "cost")


def test_recorded_minutes__late_rows_too__in_the_minute_they_came_in_under_their_own_stage(
    records: list[RequestRecord],
) -> None:
    groups: dict[tuple[int, int, str], list[RequestRecord]] = defaultdict(list)
    for r in within(records, 12):
        groups[minute_of(r), r.rollout_stage, r.variant].append(r)
    assert any(stage == 1 and minute > MINUTE + 6 for minute, stage, _ in groups)

    found = recorded_minutes(rows(0, 12), counted=(), log_ratio=LOG_RATIO)

    assert [(row.minute, row.stage, row.variant) for row in found] == sorted(groups)
    for row in found:
        mine = groups[row.minute, row.stage, row.variant]
        assert row.allocated == len(mine)
        assert (row.requests, row.unanswered) == (sum(map(is_request, mine)), sum(map(is_unanswered, mine)))
        assert sum(row.reasons.values()) == row.unanswered
        assert (row.judged, row.errors) == (sum(map(is_judged, mine)), sum(map(is_failed, mine)))
        answered = [r for r in mine if is_answered(r)]
        priced = [r for r in answered if r.cost_known]
        assert row.latency == Counter(bin_of(r.latency_ms) for r in answered)
        assert row.latency_ms == sum(r.latency_ms for r in answered)
        assert row.cost == Counter(bin_of(cost_units(r)) for r in priced)
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
        cap = {"latency": LIMITS.latency_cap_ms, "cost": LIMITS.cost_cap}.get(metric, 1.0)
        clusters = [
            [min(value, cap) for r in mine if (value := value_of(metric, r)) is not None]
            for (arm, _), mine in units.items()
            if arm == variant
        ]
        assert sums.requests == sum(map(len, clusters))
        assert sums.requests_squared == sum(len(c) ** 2 for c in clusters)
        assert sums.total == pytest.approx(sum(map(sum, clusters)))
        assert sums.total_squared == pytest.approx(sum(sum(c) ** 2 for c in clusters))
        assert sums.cross == pytest.approx(sum(len(c) * sum(c) for c in clusters))
        assert sums.values_squared == pytest.approx(sum(v * v for c in clusters for v in c))


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
    assert user_minutes(nobody, weights_before=[0], slow_bin=1, log_ratio=LOG_RATIO) == []
