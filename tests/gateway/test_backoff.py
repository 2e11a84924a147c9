from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.failover import (
    BASE_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    MAX_SECONDS,
    wait_before_retry,
)
from integrations.providers.errors import FailureKind, ProviderError

DRAWS = st.floats(0, 1, exclude_max=True)
RETRYABLE = [FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE, FailureKind.TIMEOUT]


def failed(kind: FailureKind, retry_after: float | None = None) -> ProviderError:
    return ProviderError("no", kind=kind, retry_after=retry_after)


@given(retries=st.integers(0, 20), draw=DRAWS, kind=st.sampled_from(RETRYABLE))
def test_wait__retryable__between_nothing_and_a_ceiling_that_doubles(
    retries: int, draw: float, kind: FailureKind
) -> None:
    wait = wait_before_retry(failed(kind), retries, draw)

    assert wait is not None
    assert 0 <= wait <= min(MAX_SECONDS, BASE_SECONDS * 2**retries)


def test_wait__draws_over_the_whole_range__reach_from_nothing_to_the_ceiling() -> None:
    waits = [wait_before_retry(failed(FailureKind.UNAVAILABLE), 2, n / 1000) for n in range(1000)]

    assert waits[0] == 0
    assert waits == sorted(waits, key=lambda wait: wait or 0)
    assert waits[-1] == pytest.approx(4 * BASE_SECONDS, rel=0.01)


@given(retry_after=st.floats(0, MAX_RETRY_AFTER_SECONDS), draw=DRAWS)
def test_wait__short_retry_after__is_honoured_once(retry_after: float, draw: float) -> None:
    failure = failed(FailureKind.RATE_LIMITED, retry_after)

    assert wait_before_retry(failure, 0, draw) == retry_after
    assert wait_before_retry(failure, 1, draw) is None


@given(retry_after=st.floats(0, MAX_RETRY_AFTER_SECONDS), retries=st.integers(1, 10), draw=DRAWS)
def test_wait__short_retry_after_of_a_broken_provider__never_shortens_later_waits(
    retry_after: float, retries: int, draw: float
) -> None:
    own = wait_before_retry(failed(FailureKind.UNAVAILABLE), retries, draw)

    wait = wait_before_retry(failed(FailureKind.UNAVAILABLE, retry_after), retries, draw)

    assert own is not None
    assert wait == max(own, retry_after)


@given(retry_after=st.floats(MAX_RETRY_AFTER_SECONDS, 1e6, exclude_min=True), draw=DRAWS)
def test_wait__long_retry_after__is_not_waited_for(retry_after: float, draw: float) -> None:
    for kind in (FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE):
        assert wait_before_retry(failed(kind, retry_after), 0, draw) is None


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind not in RETRYABLE])
def test_wait__not_retryable__is_over(kind: FailureKind) -> None:
    assert wait_before_retry(failed(kind), 0, 0.5) is None
