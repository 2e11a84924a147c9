"""The engine's start, its refusals, its orderly stop, and the data that survives a kill."""

from __future__ import annotations

import signal
import threading
from collections import deque
from pathlib import Path

import pytest
from clickhouse_driver.errors import Error, ServerException

from tests.analytics.engine_process import EngineProcess, running_engine
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

ENDLESS = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1"
KILLS = 3


def test_start__serving__announces_port_and_address_and_withdraws_them(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with running_engine(directory, ANALYTICS_ENGINE_USER="gateway", ANALYTICS_ENGINE_PASSWORD="p@ss/word") as engine:
        url = engine.url_file.read_text().strip()
        mode = engine.url_file.stat().st_mode & 0o777
        assert (url, mode) == (f"clickhouse://gateway:p%40ss%2Fword@127.0.0.1:{engine.port}/llm", 0o600)
        with engine.client() as client:
            assert client.execute("SELECT 1") == [(1,)]
        with engine.client(password="") as client, pytest.raises(ServerException, match="Authentication failed"):
            client.execute("SELECT 1")

        assert engine.stop() == 0

    assert not engine.port_file.exists()
    assert not engine.url_file.exists()


def test_start__directory_in_use__is_refused_in_one_line(tmp_path: Path) -> None:
    with running_engine(tmp_path / "data") as engine:
        # The directory is beside the first one's, so that the second engine has its own log and addresses.
        link = tmp_path / "again"
        link.symlink_to(engine.directory)
        second = EngineProcess(link)

        assert second.process.wait(START_SECONDS) == 75
        assert second.log().splitlines() == [
            f"CommandError: The analytics directory {link} is in use by another engine (process {engine.process.pid})."
        ]
        with engine.client() as client:
            assert client.execute("SELECT 1") == [(1,)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop__queries_running__kills_them_and_exits_with_zero(tmp_path: Path, number: signal.Signals) -> None:
    outcomes: list[str] = []

    def ask(sql: str) -> None:
        with engine.client() as client:
            try:
                deque(client.execute_iter(sql), maxlen=0)
                outcomes.append("answered")
            except (Error, EOFError, ConnectionError):
                outcomes.append("refused")

    with running_engine(tmp_path / "data") as engine, engine.client() as watching:
        statements = [f"{ENDLESS} /* {n} */" for n in range(4)] + ["SELECT number, toString(number) FROM numbers(1e12)"]
        threads = [threading.Thread(target=ask, args=(sql,)) for sql in statements]
        for thread in threads:
            thread.start()
        wait_until(lambda: watching.execute("SELECT count() FROM system.processes") == [(1 + len(statements),)])

        assert engine.stop(number) == 0, engine.log()

        for thread in threads:
            thread.join(TIMEOUT_SECONDS)
    assert outcomes == ["refused"] * len(statements)


def test_stop__idle_clients_connected__does_not_wait_for_them(tmp_path: Path) -> None:
    with running_engine(tmp_path / "data") as engine, engine.client() as idle:
        idle.execute("SELECT 1")

        assert engine.stop() == 0


def test_kill__under_writers_several_times__loses_no_acknowledged_row(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    acknowledged: set[int] = set()
    next_batch = iter(range(1, 1_000_000))
    for _ in range(KILLS):
        with running_engine(directory) as engine:
            with engine.client() as client:
                client.execute(
                    "CREATE TABLE IF NOT EXISTS kept (batch UInt64, n UInt8) ENGINE = MergeTree ORDER BY batch"
                )
            before = len(acknowledged)
            writers = [threading.Thread(target=_write, args=(engine, next_batch, acknowledged)) for _ in range(3)]
            for writer in writers:
                writer.start()
            wait_until(lambda target=before + 30: len(acknowledged) >= target)  # type: ignore[misc] # binds the value
            assert engine.stop(signal.SIGKILL) == -signal.SIGKILL
            for writer in writers:
                writer.join(TIMEOUT_SECONDS)
    with running_engine(directory) as engine, engine.client() as client:
        stored = dict(client.execute("SELECT batch, count() FROM kept GROUP BY batch"))
        check = client.execute("CHECK TABLE kept SETTINGS check_query_single_value_result = 1")

    assert {batch for batch in acknowledged if stored.get(batch) != 100} == set()
    assert check == [(1,)]


def _write(engine: EngineProcess, batches: object, acknowledged: set[int]) -> None:
    with engine.client() as client:
        for batch in batches:  # type: ignore[attr-defined] # an iterator shared by the writers
            try:
                client.execute("INSERT INTO kept VALUES", [(batch, n) for n in range(100)])
            except (Error, EOFError, ConnectionError):
                return
            acknowledged.add(batch)
