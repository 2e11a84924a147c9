from __future__ import annotations

from collections import Counter
from math import ceil, inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.health.histogram import LAST_BUCKET, MAX_MS, MIN_MS, RELATIVE_ERROR, bucket_of, quantiles

LATENCIES = st.floats(MIN_MS, MAX_MS)


@settings(deadline=None)
@given(LATENCIES)
def test_bucket__any_latency__stands_for_it_within_five_percent(latency: float) -> None:
    (found,) = quantiles({bucket_of(latency): 1}, [0.5])

    assert found == pytest.approx(latency, rel=RELATIVE_ERROR + 1e-9)


@settings(deadline=None)
@given(st.lists(LATENCIES, min_size=1, max_size=300), st.lists(st.floats(0, 1), min_size=1, max_size=5).map(sorted))
def test_quantiles__any_samples__are_those_of_the_sorted_list(latencies: list[float], shares: list[float]) -> None:
    found = quantiles(Counter(map(bucket_of, latencies)), shares)

    exact = [sorted(latencies)[max(1, ceil(share * len(latencies))) - 1] for share in shares]
    assert found == pytest.approx(exact, rel=RELATIVE_ERROR + 1e-9)


@pytest.mark.parametrize(
    ("latency", "bucket"), [(0.0, 0), (-5.0, 0), (nan, 0), (MIN_MS, 0), (1e12, LAST_BUCKET), (inf, LAST_BUCKET)]
)
def test_bucket__outside_the_range__is_the_nearest(latency: float, bucket: int) -> None:
    assert bucket_of(latency) == bucket
