from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.service import LiveService, service_on_migrated_stores


@pytest.fixture(scope="session")
def journey_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    with service_on_migrated_stores(tmp_path_factory.mktemp("journey") / "var") as service:
        yield service
