"""A whole `manage.py serve` for the journeys, which kill its children and read its log afterwards."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.live.service import LiveService
from tests.migrated import place_database, place_tables


@pytest.fixture(scope="session")
def journey_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    var_dir = tmp_path_factory.mktemp("journey") / "var"
    place_database(var_dir)
    place_tables(var_dir / "clickhouse")
    service = LiveService(var_dir)
    try:
        yield service
        assert service.stop() == 0
    finally:
        if service.process.poll() is None:
            service.process.send_signal(signal.SIGKILL)
            service.process.wait()
