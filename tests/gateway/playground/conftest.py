"""A service whose comparisons give up sooner than slow providers answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.conftest import LONG_TIMEOUTS, assert_log_is_clean
from tests.gateway.service import GatewayService

# This time is long enough for an answer on a busy machine, and short for a test that waits for its end.
COMPARE_SECONDS = 10.0
JUDGE_SECONDS = 10.0


@pytest.fixture(scope="session")
def service() -> Iterator[GatewayService]:
    given_up = {"COMPARE_SECONDS": str(COMPARE_SECONDS), "JUDGE_SECONDS": str(JUDGE_SECONDS)}
    with GatewayService(workers=1, settings={**LONG_TIMEOUTS, **given_up}) as running:
        yield running
        assert_log_is_clean(running)
