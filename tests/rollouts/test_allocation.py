"""Allocation: monotone, fair, independent between rollouts, and the same everywhere."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import pytest

from analytics.clickhouse import client
from rollouts.allocation import (
    BUCKETS,
    Allocation,
    AllocationType,
    UnitKind,
    Variant,
    unit_number,
    variant_at,
    variant_of,
)
from tests.rollouts.allocation_sql import target_sql, unit_sql
from tests.tables.cases import tabled

ROLLOUT = "0197f3a0-0000-7000-8000-000000000001"
OTHER = "0197f3a0-0000-7000-8000-000000000002"
UNITS = 100_000


@pytest.fixture(scope="module")
def units() -> list[int]:
    return [unit_number(ROLLOUT, UnitKind.USER, f"user-{index}") for index in range(UNITS)]


def allocate(kind: AllocationType, *, user: str = "", session: str = "", weight: int = 50) -> Allocation:
    return variant_of(ROLLOUT, kind, weight, user_id=user, session_id=session, request_id="request-1")


def test_unit_number__is_the_documented_hash() -> None:
    digest = sha256(f"{ROLLOUT}:session:s-1".encode()).digest()

    assert unit_number(ROLLOUT, UnitKind.SESSION, "s-1") == int.from_bytes(digest[:8], "big")


@tabled
def test_variant_of__units_at_hand__takes_the_first_it_may(
    requested_kind: AllocationType, user: str, session: str, kind: UnitKind, fallback: bool
) -> None:
    allocation = allocate(requested_kind, user=user, session=session)

    value = {UnitKind.USER: user, UnitKind.SESSION: session, UnitKind.REQUEST: "request-1"}[kind]
    assert (allocation.kind, allocation.fallback) == (kind, fallback)
    assert allocation.unit == unit_number(ROLLOUT, kind, value)
    assert allocation.variant is variant_at(allocation.unit, 50)


def test_variant_of__same_text_as_user_and_session__are_two_units() -> None:
    by_user = allocate(AllocationType.USER_STICKY, user="same")
    by_session = allocate(AllocationType.SESSION_STICKY, session="same")

    assert by_user.unit != by_session.unit


@pytest.mark.parametrize("user", ["ü", "用户", "a:b", "\ud800", "x" * 10_000])
def test_variant_of__any_text__is_allocated_alike_each_time(user: str) -> None:
    first = allocate(AllocationType.USER_STICKY, user=user)

    assert first == allocate(AllocationType.USER_STICKY, user=user)
    assert 0 <= first.unit < 2**64


@pytest.fixture(scope="module")
def targets(units: list[int]) -> list[int]:
    """Returns for each weight from 0 to 100 the units in the target arm as the bits of one number."""
    return [
        int("".join("1" if variant_at(unit, weight) is Variant.TARGET else "0" for unit in units), 2)
        for weight in range(101)
    ]


def test_variant_at__every_pair_of_weights__keeps_who_was_in(targets: list[int]) -> None:
    # Neighbouring weights decide all 5,050 pairs, since inclusion is transitive.
    for members, now in pairwise(targets):
        assert members & ~now == 0


def test_variant_at__weight_0_and_100__takes_nobody_and_everybody(units: list[int]) -> None:
    assert {variant_at(unit, 0) for unit in units} == {Variant.BASELINE}
    assert {variant_at(unit, 100) for unit in units} == {Variant.TARGET}


def test_variant_at__shares__are_within_four_standard_deviations(targets: list[int]) -> None:
    for weight in range(1, 100):
        share = targets[weight].bit_count() / UNITS
        expected = weight / 100
        assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / UNITS)


def test_unit_number__buckets__are_uniform(units: list[int]) -> None:
    counts = [0] * 1000
    for unit in units:
        counts[unit % BUCKETS // 10] += 1
    chi_squared = sum((count - 100) ** 2 / 100 for count in counts)

    # The statistic has 999 degrees of freedom, so a mean of 999 and a standard deviation of 44.7.
    assert abs(chi_squared - 999) < 4 * math.sqrt(2 * 999)


def test_unit_number__two_rollouts__are_uncorrelated(units: list[int]) -> None:
    others = [unit_number(OTHER, UnitKind.USER, f"user-{index}") for index in range(UNITS)]
    middle = (BUCKETS - 1) / 2
    variance = (BUCKETS**2 - 1) / 12
    pairs = zip(units, others, strict=True)
    covariance = sum((one % BUCKETS - middle) * (two % BUCKETS - middle) for one, two in pairs) / UNITS

    assert abs(covariance / variance) < 4 / math.sqrt(UNITS)


@dataclass(frozen=True)
class SqlAllocation:
    rollout_id: uuid.UUID
    user_id: str
    session_id: str
    request_id: uuid.UUID
    unit: int
    is_target: int


@pytest.mark.parametrize("allocation_type", list(AllocationType))
def test_sql__2000_rows__agrees_with_the_gateway(allocation_type: AllocationType, clickhouse_engine: None) -> None:
    weight = 37
    rows = client.query(
        f"SELECT *, {unit_sql(allocation_type)} AS unit, {target_sql('unit', '{weight:UInt8}')} AS is_target"  # noqa: S608
        " FROM (SELECT {rollout:UUID} AS rollout_id,"
        " if(number % 3 = 0, '', concat('ü:', toString(number))) AS user_id,"
        " if(number % 5 = 0, '', concat('用户', toString(number % 400))) AS session_id,"
        " generateUUIDv7(number) AS request_id FROM numbers(2000))",
        {"rollout": uuid.UUID(ROLLOUT), "weight": weight},
        row=SqlAllocation,
        name="test.allocation",
    )

    assert len(rows) == 2000
    for row in rows:
        allocation = variant_of(
            str(row.rollout_id),
            allocation_type,
            weight,
            user_id=row.user_id,
            session_id=row.session_id,
            request_id=str(row.request_id),
        )
        assert (allocation.unit, allocation.variant is Variant.TARGET) == (row.unit, bool(row.is_target))
