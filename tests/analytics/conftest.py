from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
from clickhouse_driver import Client
from pytest_django import Settings

from analytics.clickhouse import client
from tests.analytics.engine_process import EngineProcess, running_engine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with running_engine(tmp_path_factory.mktemp("engine") / "data") as started:
        yield started


@pytest.fixture(scope="session")
def second_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str | None]:
    """The address of an engine beside the suite's; None when the suite uses a server."""
    if os.environ.get("CLICKHOUSE_URL"):
        yield None
        return
    with running_engine(tmp_path_factory.mktemp("second") / "data") as engine:
        yield engine.url


@pytest.fixture
def empty_store(second_engine: str | None, settings: Settings, stores: None) -> Iterator[None]:
    """An empty store beside the suite's, without any table."""
    usual = settings.CLICKHOUSE_URL
    name = f"empty_{uuid.uuid4().hex}"
    if second_engine is None:
        server = Client.from_url(usual)
        server.execute(f"CREATE DATABASE {name}")
    settings.CLICKHOUSE_URL = second_engine or urlunsplit(urlsplit(usual)._replace(path=f"/{name}"))
    client.close()
    yield
    if second_engine is None:
        server.execute(f"DROP DATABASE {name} SYNC")
        server.disconnect()
    else:
        _drop_everything()
    client.close()
    settings.CLICKHOUSE_URL = usual


def _drop_everything() -> None:
    # Views are dropped first, because a dropped table would leave them without their source.
    views = (
        "SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY engine = 'MaterializedView' DESC"
    )
    for (name,) in client.execute(views):
        client.execute(f"DROP TABLE `{name}` SYNC")
