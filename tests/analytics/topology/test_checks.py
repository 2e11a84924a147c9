"""Servers that are not those of the mode are found before anything is stored on them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
from clickhouse_driver import Client
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from pytest_django import Settings

from analytics.clickhouse import client, migrator
from analytics.clickhouse.topology.checks import find_differences, find_faults
from tests.analytics.engine_process import running_engine
from tests.analytics.topology.engine import CLUSTER
from tests.slow_proxy import proxy_in_turn

_PASSWORD = "shared-by-both"


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of two engines with one password, the first of which knows a cluster."""
    folder = tmp_path_factory.mktemp("engines")
    cluster = ("-m", "tests.analytics.topology.engine")
    with (
        running_engine(folder / "one", program=cluster, ANALYTICS_ENGINE_PASSWORD=_PASSWORD) as one,
        running_engine(folder / "other", ANALYTICS_ENGINE_PASSWORD=_PASSWORD) as other,
    ):
        yield one.url, other.url


@pytest.fixture(autouse=True)
def usual_address(settings: Settings) -> Iterator[None]:
    usual = settings.CLICKHOUSE_URL
    yield
    client.close()
    settings.CLICKHOUSE_URL = usual


def _faults() -> str:
    return " ".join(find_faults())


def test_one_server__has_no_fault(engines: tuple[str, str], settings: Settings) -> None:
    settings.CLICKHOUSE_URL = engines[1]

    assert _faults() == ""


@pytest.mark.django_db
def test_two_servers_behind_one_address__are_not_served_with(engines: tuple[str, str], settings: Settings) -> None:
    with proxy_in_turn(*engines) as address:
        settings.CLICKHOUSE_URL = address

        with pytest.raises(ImproperlyConfigured, match="CLICKHOUSE_URL reaches 2 servers in turn"):
            migrator.migrate()
        output = io.StringIO()
        with pytest.raises(SystemExit) as ended:
            call_command("check_deployment", json=True, stdout=output)

    assert ended.value.code == 1
    messages = [one["message"] for one in json.loads(output.getvalue())["problems"] if one["check"] == "clickhouse"]
    assert len(messages) == 1
    assert messages[0].endswith("name one of them, or set CLICKHOUSE_MODE.")


def test_several_servers_in_the_address__need_a_mode(engines: tuple[str, str], settings: Settings) -> None:
    settings.CLICKHOUSE_URL = f"{engines[1]}?alt_hosts=127.0.0.1:{urlsplit(engines[0]).port}"

    assert _faults().startswith("CLICKHOUSE_URL names several servers (alt_hosts), which need a CLICKHOUSE_MODE")


def test_store_without_its_database__has_no_fault_yet(engines: tuple[str, str], settings: Settings) -> None:
    settings.CLICKHOUSE_URL = urlunsplit(urlsplit(engines[0])._replace(path="/absent"))

    assert _faults() == ""


def test_replicated__database_of_one_server__is_refused(engines: tuple[str, str], settings: Settings) -> None:
    settings.CLICKHOUSE_URL, settings.CLICKHOUSE_MODE = engines[0], "replicated"

    assert "The database llm has the engine Atomic, which is none of CLICKHOUSE_MODE=replicated" in _faults()


def test_cluster__unknown_to_the_servers__is_refused(engines: tuple[str, str], settings: Settings) -> None:
    settings.CLICKHOUSE_URL, settings.CLICKHOUSE_MODE = engines[0], "cluster:elsewhere"

    assert "The servers know no cluster elsewhere (system.clusters)" in _faults()


def test_cluster__known__has_no_fault(engines: tuple[str, str], settings: Settings) -> None:
    settings.CLICKHOUSE_URL, settings.CLICKHOUSE_MODE = engines[0], f"cluster:{CLUSTER}"

    assert _faults() == ""


def test_cluster__column_on_some_servers__is_named(
    engines: tuple[str, str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CLICKHOUSE_URL = engines[0]
    client.execute("CREATE TABLE IF NOT EXISTS requests (project_id UUID, team_id UInt64) ENGINE = Null")
    settings.CLICKHOUSE_MODE = f"cluster:{CLUSTER}"
    execute = Client.execute
    # The only server of this cluster counts itself twice.

    def twice(self: Client, sql: str, *rest: object, **more: object) -> object:
        return execute(self, sql.replace("SELECT count() FROM cluster", "SELECT 2 FROM cluster"), *rest, **more)

    monkeypatch.setattr(Client, "execute", twice)

    assert [one.partition(":")[0] for one in find_differences()] == [
        "Column project_id of table requests is on 1 of 2 servers"
    ]


def test_user_without_a_right__is_told_which(
    engines: tuple[str, str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CLICKHOUSE_URL, settings.CLICKHOUSE_MODE = engines[0], f"cluster:{CLUSTER}"
    execute = Client.execute

    def denied(self: Client, sql: str, *rest: object, **more: object) -> object:
        return [(0,)] if sql == "CHECK GRANT REMOTE ON *.*" else execute(self, sql, *rest, **more)

    monkeypatch.setattr(Client, "execute", denied)

    assert _faults() == "The user of CLICKHOUSE_URL lacks a right: GRANT REMOTE ON *.*."


@pytest.mark.parametrize("mode", ["replicated", "cloud", "cluster:prod"])
def test_mode_that_is_not_proven__is_refused_until_the_operator_says_so(settings: Settings, mode: str) -> None:
    settings.CLICKHOUSE_MODE = mode

    with pytest.raises(ImproperlyConfigured, match=r"Run `manage\.py prove_analytics` on yours"):
        migrator.migrate()
    with pytest.raises(ImproperlyConfigured, match="ANALYTICS_UNPROVEN=1"):
        migrator.missing_migrations()
