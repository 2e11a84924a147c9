from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.fakes.collector import Collector, collector


@pytest.fixture
def destination(settings: Settings) -> Iterator[Collector]:
    """A collector on loopback, where the setting lets the project export to."""
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    with collector() as running:
        yield running
