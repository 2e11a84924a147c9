"""A service that compares with less patience than its providers may need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.service import PROVIDER_SECRET, GatewayService

# Long enough for whoever answers on a busy machine, short for those who wait for its end.
COMPARE_SECONDS = 4.0
JUDGE_SECONDS = 3.0


@pytest.fixture(scope="session")
def service() -> Iterator[GatewayService]:
    settings = {
        "COMPARE_SECONDS": str(COMPARE_SECONDS),
        "JUDGE_SECONDS": str(JUDGE_SECONDS),
        "UPSTREAM_FIRST_BYTE_SECONDS": "60",
        "UPSTREAM_IDLE_SECONDS": "60",
    }
    with GatewayService(settings=settings) as running:
        yield running
        log = running.log.read_text(errors="replace")
        assert PROVIDER_SECRET not in log
        assert "Traceback" not in log, log[-4000:]
