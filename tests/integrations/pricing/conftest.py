from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.integrations.pricing.catalog_server import CatalogServer, catalog_server


@pytest.fixture
def server(settings: Settings) -> Iterator[CatalogServer]:
    """Serves the catalogs at the addresses that the settings name: `/a` and `/b`."""
    with catalog_server() as running:
        settings.PRICING_CATALOGS = {"catalog_a": f"{running.url}/a", "catalog_b": f"{running.url}/b"}
        yield running
