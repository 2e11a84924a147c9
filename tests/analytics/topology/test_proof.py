"""`manage.py prove_analytics` passes on one engine, and fails with the reason on servers that break a promise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.proof.promises import PROMISES
from tests.analytics.engine_process import EngineProcess, running_engine
from tests.analytics.topology.engine import CLUSTER

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with running_engine(tmp_path_factory.mktemp("proof") / "data") as started:
        yield started


@pytest.fixture
def own_address(settings: Settings, engine: EngineProcess) -> Iterator[None]:
    usual, settings.CLICKHOUSE_URL = settings.CLICKHOUSE_URL, engine.url
    yield
    client.close()
    settings.CLICKHOUSE_URL = usual


def _prove(*servers: str) -> str:
    output = StringIO()
    call_command("prove_analytics", *(f"--server={one}" for one in servers), stdout=output)
    return output.getvalue()


def _databases() -> set[str]:
    return {name for (name,) in client.execute("SELECT name FROM system.databases")}


def test_prove__one_engine__keeps_every_promise_and_leaves_nothing(own_address: None) -> None:
    before = _databases()

    output = _prove()

    assert output.count(": kept") == len(PROMISES)
    assert f"All {len(PROMISES)} promises of CLICKHOUSE_MODE=single are kept." in output
    assert _databases() == before


def test_prove__several_servers_of_which_one_is_found__asks_for_their_names(
    own_address: None, engine: EngineProcess, settings: Settings
) -> None:
    settings.CLICKHOUSE_MODE = "replicated"

    with pytest.raises(CommandError, match="Found 1 of the store's servers, and a proof needs two: name them"):
        _prove(f"127.0.0.1:{engine.port}")
    with pytest.raises(CommandError, match=r"--server ch-1: expected HOST:PORT"):
        _prove("ch-1")


@pytest.mark.parametrize("mode", [f"cluster:{CLUSTER}"])
def test_prove__cluster_without_keeper__keeps_all_that_does_not_need_it(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory, mode: str
) -> None:
    """The tables of this engine are on one server alone, which the proof says; the rest of the mode runs."""
    folder = tmp_path_factory.mktemp("cluster") / "data"
    with running_engine(folder, program=("-m", "tests.analytics.topology.engine")) as engine:
        settings.CLICKHOUSE_URL, settings.CLICKHOUSE_MODE = engine.url, mode
        output = StringIO()
        with pytest.raises(CommandError, match=f"1 of {len(PROMISES)} promises of CLICKHOUSE_MODE={mode} are broken"):
            call_command(
                "prove_analytics",
                f"--server=127.0.0.1:{engine.port}",
                f"--server=localhost:{engine.port}",
                stdout=output,
            )
        client.close()

    first, *others = [line for line in output.getvalue().splitlines() if re.match(r"\d/\d ", line)]
    assert re.search(r"BROKEN: table \w+ is on 127\.0\.0\.1:\d+ alone: its engine is \w+MergeTree", first)
    assert len(others) == len(PROMISES) - 1
    assert all(line.endswith(": kept") for line in others)
