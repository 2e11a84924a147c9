"""The product's client of ClickHouse, against an engine of the test's own."""

from __future__ import annotations

import signal
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from analytics.clickhouse import client
from analytics.clickhouse.address import resolve_url
from analytics.clickhouse.client import bind
from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError
from tests.analytics.engine_process import EngineProcess, running_engine
from tests.gateway.service import free_port
from tests.tables.cases import tabled

ENDLESS = "SELECT count() AS count, '' AS name FROM numbers(1000000000000) WHERE sipHash64(number) = 1"


@dataclass(frozen=True)
class Named:
    name: str
    count: int


@pytest.fixture
def run_dir(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    """An embedded installation whose engine has not announced its address yet."""
    settings.CLICKHOUSE_URL = None
    settings.RUN_DIR = tmp_path
    settings.CLICKHOUSE_DATABASE = "llm"
    client.close()
    yield tmp_path
    client.close()


@pytest.fixture
def announced(run_dir: Path, engine: EngineProcess) -> None:
    announce(run_dir, engine)


@pytest.fixture
def table(announced: None) -> str:
    client.execute("DROP TABLE IF EXISTS counted")
    client.execute(
        "CREATE TABLE counted (name String, count UInt8) ENGINE = MergeTree ORDER BY name"
        " SETTINGS non_replicated_deduplication_window = 100"
    )
    return "counted"


def announce(run_dir: Path, engine: EngineProcess) -> None:
    (run_dir / "clickhouse.url").write_text(engine.url_file.read_text())


def ask(number: int = 1) -> list[Named]:
    return client.query("SELECT {n:UInt8} AS count, 'x' AS name", {"n": number}, row=Named, name="ask")


def test_query__columns_in_another_order__fill_fields_by_name(announced: None) -> None:
    assert ask(3) == [Named(name="x", count=3)]


def test_query__columns_and_fields_differ__is_a_mistake_of_the_caller(announced: None) -> None:
    with pytest.raises(TypeError, match=r"wrong: columns \['1'\] are not the fields \['count', 'name'\] of Named"):
        client.query("SELECT 1", {}, row=Named, name="wrong")


def test_query__times_and_lists__are_bound_exactly(announced: None) -> None:
    @dataclass(frozen=True)
    class Echo:
        ts: datetime
        whole: datetime
        ids: list[uuid.UUID]
        texts: list[str]
        flag: int
        cost: Decimal

    moment = datetime(2026, 2, 3, 6, 5, 6, 789_012, timezone(timedelta(hours=2)))
    sent: dict[str, Any] = {
        "ts": moment,
        "whole": datetime(2026, 2, 3, tzinfo=UTC),
        "ids": [uuid.UUID(int=7)],
        "texts": ["it's", "100%", "back\\"],
        "flag": True,
        "cost": Decimal("0.0000000001"),
    }

    [row] = client.query(
        "SELECT {ts:DateTime64(6, 'UTC')} AS ts, {whole:DateTime64(6, 'UTC')} AS whole, {ids:Array(UUID)} AS ids,"
        " {texts:Array(String)} AS texts, {flag:Bool} AS flag, {cost:Decimal(18, 10)} AS cost",
        sent,
        row=Echo,
        name="echo",
    )

    assert row == Echo(**sent)


@pytest.mark.parametrize(("value", "error"), [(None, TypeError), (datetime(2026, 1, 1), ValueError)])  # noqa: DTZ001 - on purpose
def test_bind__value_that_would_be_misread__is_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="parameter x"):
        bind({"x": value})
    with pytest.raises(error, match="parameter x"):
        bind({"x": [value]})


def test_query__statement_that_writes__is_refused(table: str) -> None:
    with pytest.raises(AnalyticsQueryError) as caught:
        client.query("INSERT INTO counted VALUES ('a', 1)", {}, row=Named, name="write")

    assert caught.value.server_code == 164


def test_query__too_long__is_a_limit_in_words(announced: None, settings: Settings) -> None:
    settings.CLICKHOUSE_QUERY_SECONDS = 1

    with pytest.raises(AnalyticsLimitError, match="takes longer") as caught:
        client.query(ENDLESS, {}, row=Named, name="slow")

    assert caught.value.status == 503


def test_query__too_much_memory__is_a_limit_in_words(announced: None, settings: Settings) -> None:
    settings.CLICKHOUSE_QUERY_BYTES = 50_000_000

    with pytest.raises(AnalyticsLimitError, match="more memory"):
        client.query(
            "SELECT length(groupArray(number)) AS count, '' AS name FROM numbers(100000000)", {}, row=Named, name="big"
        )


def test_query__refused_by_the_server__keeps_values_out_of_message_and_log(
    announced: None, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AnalyticsQueryError) as caught:
        client.query("SELECT throwIf(1, {secret:String}) AS count", {"secret": "prompt"}, row=Named, name="leak")

    assert caught.value.server_code == 395
    assert "prompt" in caught.value.reason
    assert "prompt" not in caught.value.message
    assert "prompt" not in caplog.text


def test_address__nothing_announced__is_unavailable(run_dir: Path) -> None:
    with pytest.raises(AnalyticsUnavailableError, match="not running"):
        ask()


def test_address__nobody_listens__is_unavailable(run_dir: Path) -> None:
    (run_dir / "clickhouse.url").write_text("clickhouse://127.0.0.1:1/llm")

    with pytest.raises(AnalyticsUnavailableError, match="does not answer"):
        ask()


@tabled
def test_address__configured__names_a_database(settings: Settings, configured: str, resolved: str) -> None:
    settings.CLICKHOUSE_URL = configured
    settings.CLICKHOUSE_DATABASE = "llm"

    assert resolve_url() == resolved


def test_connection__engine_restarted_on_another_port__is_found_again(run_dir: Path, tmp_path: Path) -> None:
    directory = tmp_path / "engine"
    # The port is reserved for this test, so that no other engine listens there once this one has ended.
    with running_engine(directory, port=free_port()) as first:
        announce(run_dir, first)
        client.execute("CREATE TABLE kept (name String, count UInt8) ENGINE = MergeTree ORDER BY name")
        client.insert("kept", ("name", "count"), [("a", 1)], token="one")
        first.stop(signal.SIGKILL)
    with pytest.raises(AnalyticsUnavailableError):
        ask()
    with running_engine(directory) as second:
        announce(run_dir, second)

        assert client.query("SELECT * FROM kept", {}, row=Named, name="kept") == [Named("a", 1)]


def test_connection__engine_restarted_between_two_queries__costs_no_query(run_dir: Path, tmp_path: Path) -> None:
    directory = tmp_path / "engine"
    with running_engine(directory) as first:
        announce(run_dir, first)
        ask()
    with running_engine(directory, ANALYTICS_ENGINE_PASSWORD="another") as second:
        announce(run_dir, second)

        assert ask(5) == [Named("x", 5)]


def test_connection__each_thread__has_its_own(announced: None) -> None:
    answers: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            answers.extend(row.count == number for row in ask(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 160


def test_insert__same_token__counts_once(table: str) -> None:
    for _ in range(5):
        client.insert(table, ("count", "name"), [(1, "a"), (2, "b")], token="same")
    client.insert(table, ("count", "name"), [(1, "a"), (2, "b")], token="other")

    assert client.execute("SELECT count(), sum(count) FROM counted") == [(4, 6)]


def test_insert__no_rows__does_nothing(table: str) -> None:
    client.insert(table, ("count", "name"), [], token="none")

    assert client.execute("SELECT count() FROM counted") == [(0,)]


@pytest.mark.parametrize("row", [("text", "a"), (300, "a"), (1, 5), (1, "\ud800"), (None, "a")])
def test_insert__value_that_does_not_fit__is_a_failure_of_the_rows(table: str, row: tuple[object, object]) -> None:
    with pytest.raises(AnalyticsQueryError) as caught:
        client.insert(table, ("count", "name"), [(1, "fits"), row], token="poison")

    assert caught.value.server_code == 0
    assert client.execute("SELECT count() FROM counted") == [(0,)]


@pytest.mark.parametrize("name", ["t; DROP TABLE t", "a.b.c", "`t`", ""])
def test_insert__name_that_is_no_name__never_reaches_sql(announced: None, name: str) -> None:
    with pytest.raises(ValueError, match="not a plain name"):
        client.insert(name, ("a",), [(1,)], token="x")
    with pytest.raises(ValueError, match="not a plain name"):
        client.insert("t", (name,), [(1,)], token="x")
