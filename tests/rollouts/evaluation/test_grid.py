"""The grid of latencies and costs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.clickhouse import client
from analytics.queries.variants import outcomes
from rollouts.evaluation.statistics.grid import BINS_PER_MARGIN, LOG_RATIO, bin_of, quantile, value_of


@given(st.integers(1, 10**13))
def test_bin_of__any_value__is_kept_within_1_2_percent(value: int) -> None:
    assert value_of(bin_of(value)) == pytest.approx(value, rel=0.012)


@given(st.integers(1, 3000))
def test_bin_of__value_of_a_bin__is_that_bin(number: int) -> None:
    assert bin_of(value_of(number)) == number


def test_value_of__ten_bins_on__is_a_quarter_more() -> None:
    assert value_of(300 + BINS_PER_MARGIN) == pytest.approx(1.25 * value_of(300))


def test_bin_of__nothing__is_bin_0_and_less_than_a_unit_bin_1() -> None:
    assert (bin_of(0), bin_of(-5), bin_of(0.3), bin_of(1)) == (0, 0, 1, 1)
    assert value_of(0) == 0


def test_quantile__values__is_close_to_the_exact_one() -> None:
    values = list(range(100, 2000, 7))
    histogram: dict[int, float] = {}
    for value in values:
        histogram[bin_of(value)] = histogram.get(bin_of(value), 0) + 1

    for percent in (5, 50, 95, 99):
        exact = statistics.quantiles(values, n=100)[percent - 1]
        assert quantile(histogram, percent / 100) == pytest.approx(exact, rel=0.012)


def test_quantile__no_weight__is_none() -> None:
    assert quantile({}, 0.95) is None
    assert quantile({5: 0.0}, 0.95) is None


def test_quantile__whole_weight__is_at_the_highest_value() -> None:
    assert quantile({100: 1.0, 200: 1.0}, 1.0) == pytest.approx(value_of(200), rel=0.012)


@dataclass(frozen=True)
class SqlBin:
    value: int
    bin: int


def test_sql__values__fall_into_the_same_bins(clickhouse_engine: None) -> None:
    column = "toUInt64(if(number < 3000, number, pow(1.7, (number - 2980))))"
    rows = client.query(
        f"SELECT value, {outcomes.bin_of('value')} AS bin FROM (SELECT {column} AS value FROM numbers(3050))",  # noqa: S608
        {"log_ratio": LOG_RATIO},
        row=SqlBin,
        name="test.bins",
    )

    assert len(rows) == 3050
    assert all(row.bin == bin_of(row.value) for row in rows)
