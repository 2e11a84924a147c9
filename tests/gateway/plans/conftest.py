"""Fixtures for tests of plans: a service whose first worker has them and whose second has not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.conftest import assert_log_is_clean
from tests.gateway.plans.both import PlansService


@pytest.fixture(scope="session")
def plans() -> Iterator[PlansService]:
    with PlansService() as running:
        yield running
        assert_log_is_clean(running)
