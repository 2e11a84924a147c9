from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.clickhouse import client

_TABLES = (
    "requests",
    "payloads",
    "requests_minute",
    "requests_hourly",
    "requests_daily",
    "users_daily",
    "sessions",
)


@pytest.fixture
def clickhouse(clickhouse_engine: None) -> Iterator[None]:
    """The analytics store, empty again afterwards."""
    yield
    for table in _TABLES:
        client.execute(f"TRUNCATE TABLE {table}")


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    directory = tmp_path / "spool"
    directory.mkdir()
    return directory
