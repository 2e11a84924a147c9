"""Connections outlive the threads that use them, and no thread gets one that another uses or that is in doubt."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from analytics.clickhouse import client
from analytics.clickhouse import connections as pool
from analytics.clickhouse.address import resolve_url
from analytics.clickhouse.connections import Connections, connections
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from tests.analytics.engine_process import EngineProcess

READ_SECONDS = 30.0


@dataclass(frozen=True)
class Number:
    number: int


@pytest.fixture(autouse=True)
def address(engine: EngineProcess, settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """The address of the engine; connections of other tests are closed."""
    settings.CLICKHOUSE_URL = None
    settings.RUN_DIR = tmp_path
    client.close()
    announced = tmp_path / "clickhouse.url"
    announced.write_text(engine.url_file.read_text())
    yield announced
    client.close()


def ask(number: int) -> int:
    [row] = client.query("SELECT {n:UInt32} AS number", {"n": number}, row=Number, name="ask")
    return row.number


def lent(kept: Connections) -> int:
    """Returns the connection that the pool lends, used once."""
    with kept.lent(resolve_url(), READ_SECONDS) as lent_one:
        lent_one.execute("SELECT 1")
        return id(lent_one)


def test_lent__one_after_the_other_by_two_threads__is_the_same() -> None:
    kept, seen = Connections(), []
    for _ in range(3):
        thread = threading.Thread(target=lambda: seen.append(lent(kept)))
        thread.start()
        thread.join()

    assert len(set(seen)) == 1
    kept.close()


def test_lent__two_at_once__are_two() -> None:
    kept = Connections()

    with kept.lent(resolve_url(), READ_SECONDS) as one, kept.lent(resolve_url(), READ_SECONDS) as other:
        assert one is not other


def test_lent__another_time_limit__is_another() -> None:
    kept = Connections()
    with kept.lent(resolve_url(), READ_SECONDS) as one:
        pass

    with kept.lent(resolve_url(), READ_SECONDS + 1) as other:
        assert one is not other


def test_lent__after_an_error__is_a_new_one() -> None:
    kept = Connections()
    with pytest.raises(KeyboardInterrupt), kept.lent(resolve_url(), READ_SECONDS) as broken:
        broken.execute("SELECT 1")
        raise KeyboardInterrupt

    assert not broken.connection.connected
    with kept.lent(resolve_url(), READ_SECONDS) as other:
        assert other is not broken


def test_lent__idle_for_too_long__is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Connections()
    with kept.lent(resolve_url(), READ_SECONDS) as old:
        old.execute("SELECT 1")
    monkeypatch.setattr(pool, "_IDLE_SECONDS", -1.0)

    with kept.lent(resolve_url(), READ_SECONDS) as other:
        assert other is not old
    assert not old.connection.connected


def test_lent__many_at_once__few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_MAX_IDLE", 1)
    kept = Connections()
    with kept.lent(resolve_url(), READ_SECONDS) as one, kept.lent(resolve_url(), READ_SECONDS) as other:
        one.execute("SELECT 1")
        other.execute("SELECT 1")

    assert [one.connection.connected, other.connection.connected].count(True) == 1
    kept.close()


def test_lent__all_in_use__waits_and_then_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_MAX_IN_USE", 1)
    monkeypatch.setattr(pool, "_WAIT_SECONDS", 0.0)
    kept = Connections()

    with (
        kept.lent(resolve_url(), READ_SECONDS),
        pytest.raises(AnalyticsUnavailableError, match="busy"),
        kept.lent(resolve_url(), READ_SECONDS),
    ):
        pass

    with kept.lent(resolve_url(), READ_SECONDS):
        pass


def test_close__one_in_use__is_closed_when_it_comes_back() -> None:
    kept = Connections()
    with kept.lent(resolve_url(), READ_SECONDS) as used:
        used.execute("SELECT 1")
        kept.close()
        assert used.connection.connected

    assert not used.connection.connected


def test_query__many_threads__each_has_its_own_answer() -> None:
    wrong: list[tuple[int, int]] = []

    def work(first: int) -> None:
        for number in range(first, first + 25):
            answer = ask(number)
            if answer != number:
                wrong.append((number, answer))

    threads = [threading.Thread(target=work, args=(start * 1000,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_query__after_one_that_ran_into_its_limit__is_answered(settings: Settings) -> None:
    settings.CLICKHOUSE_QUERY_SECONDS = 1
    endless = "SELECT count() AS number FROM numbers(1000000000000) AS n WHERE sipHash64(n.number) = 1"
    with pytest.raises(AnalyticsLimitError):
        client.query(endless, {}, row=Number, name="endless")

    assert ask(4) == 4


def test_query__sockets_cut_while_connections_rest__are_noticed() -> None:
    ask(1)
    with connections().lent(resolve_url(), client._seconds({"max_execution_time": 20})) as resting:
        resting.connection.socket.shutdown(2)

    assert ask(5) == 5


def test_query__in_a_fork__has_a_connection_of_its_own() -> None:
    """Parent and child send queries in turns: on a shared socket each would read the other's answer."""
    assert ask(1) == 1
    before = connections()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            right = connections() is not before and [ask(number) for number in range(20)] == list(range(20))
            os.write(writer, b"right" if right else b"wrong")
        finally:
            os._exit(0)
    os.close(writer)

    assert [ask(number) for number in range(100, 120)] == list(range(100, 120))

    assert os.read(reader, 5) == b"right"
    os.close(reader)
    os.waitpid(child, 0)
