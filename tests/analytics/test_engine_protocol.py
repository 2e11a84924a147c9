"""The native protocol, used by the unmodified driver and by a client that breaks the rules."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from clickhouse_driver import Client
from clickhouse_driver.errors import ServerException

from tests.analytics.engine_process import EngineProcess
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS, wait_until

ENDLESS = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1"


@pytest.fixture
def client(engine: EngineProcess) -> Iterator[Client]:
    with engine.client() as connected:
        yield connected


def running(client: Client, mark: str) -> int:
    sql = (
        "SELECT count() FROM system.processes WHERE position(query, {mark:String}) > 0 AND query NOT LIKE '%processes%'"
    )
    return int(client.execute(sql, {"mark": mark})[0][0])


def test_hello__driver__negotiates_the_highest_revision(client: Client) -> None:
    client.execute("SELECT 1")

    info = client.connection.server_info
    assert (info.name, info.used_revision, info.get_timezone()) == ("ClickHouse", 54468, "UTC")
    assert info.version_tuple() >= (26, 0, 0)


def test_hello__no_database_named__is_the_gateways_own(client: Client) -> None:
    assert client.execute("SELECT currentDatabase()") == [("llm",)]


def test_hello__wrong_password__is_code_516(engine: EngineProcess) -> None:
    with engine.client(password="wrong") as client, pytest.raises(ServerException) as caught:
        client.execute("SELECT 1")

    assert caught.value.code == 516


def test_ping__connected__answers(client: Client) -> None:
    client.execute("SELECT 1")

    assert client.connection.ping()


def test_select__no_rows__still_names_its_columns(client: Client) -> None:
    rows, columns = client.execute(
        "SELECT number AS n, {x:String} AS x FROM numbers(0) -- nothing", {"x": "a"}, with_column_types=True
    )

    assert (rows, columns) == ([], [("n", "UInt64"), ("x", "String")])


def columns_of(client: Client, sql: str, **parameters: str) -> list[tuple[str, str]]:
    """Returns the columns of a result that must have no rows."""
    rows, columns = client.execute(sql, parameters, with_column_types=True)
    assert rows == []
    return list(columns)


def test_select__no_rows_again_after_a_change_of_the_table__names_its_new_columns(client: Client) -> None:
    client.execute("CREATE TABLE changing (a UInt8, b String) ENGINE = MergeTree ORDER BY a")
    sql = "SELECT * FROM changing WHERE a = {a:UInt8}"
    found = [columns_of(client, sql, a=value) for value in ("1", "2")]

    client.execute("ALTER TABLE changing ADD COLUMN c Date, MODIFY COLUMN b LowCardinality(String)")

    assert found == [[("a", "UInt8"), ("b", "String")]] * 2
    assert columns_of(client, sql, a="1") == [("a", "UInt8"), ("b", "LowCardinality(String)"), ("c", "Date")]
    client.execute("DROP TABLE changing")
    with pytest.raises(ServerException, match="changing"):
        client.execute(sql, {"a": "1"})


def test_select__no_rows_with_other_names__names_each_ones_columns(client: Client) -> None:
    named = "SELECT {name:Identifier} FROM numbers(0)"
    with pytest.raises(ServerException):
        columns_of(client, named, name="nothing")
    value, sql = "SELECT {x:String} FROM numbers(0)", "SELECT number AS n FROM numbers(0)"

    first, second = columns_of(client, value, x="a"), columns_of(client, value, x="b")

    assert columns_of(client, named, name="number") == [("number", "UInt64")]
    assert first != second
    assert columns_of(client, sql) == columns_of(client, sql) == [("n", "UInt64")]


def test_select__no_rows_in_sessions_that_mean_different_things__names_each_ones_columns(
    engine: EngineProcess, client: Client
) -> None:
    sql = "SELECT a.x AS x FROM (SELECT 1 AS y) AS b LEFT JOIN (SELECT 1 AS x, 2 AS y) AS a ON a.y = b.y WHERE b.y = 2"
    plain = columns_of(client, sql)

    with engine.client() as other:
        other.execute("SET join_use_nulls = 1")
        assert columns_of(other, sql) == [("x", "Nullable(UInt8)")]

    rows, columns = client.execute(sql, with_column_types=True, settings={"join_use_nulls": 1})
    assert (rows, columns) == ([], [("x", "Nullable(UInt8)")])
    assert plain == columns_of(client, sql) == [("x", "UInt8")]


def test_select__profile_and_progress__count_rows(client: Client) -> None:
    client.execute("SELECT number FROM numbers(1000) WHERE sipHash64(number) % 100 = 0")

    assert client.last_query.profile_info.rows == 11
    assert client.last_query.progress.rows == 1000


@tabled
def test_error__each_kind__has_clickhouses_code_and_leaves_the_engine_serving(
    client: Client, sql: str, code: int
) -> None:
    with pytest.raises(ServerException) as caught:
        client.execute(sql)

    assert caught.value.code == code
    assert client.execute("SELECT 1") == [(1,)]


@tabled
def test_settings__of_one_query__are_applied(client: Client, settings: dict[str, object], sql: str, code: int) -> None:
    with pytest.raises(ServerException) as caught:
        client.execute(sql, settings=settings)

    assert caught.value.code == code


def test_settings__of_one_query__do_not_reach_the_next(client: Client) -> None:
    ask = "SELECT getSetting('max_block_size'), getSetting('log_comment')"

    assert client.execute(ask, settings={"max_block_size": 77, "log_comment": "it's \\ a name"}) == [
        (77, "it's \\ a name")
    ]
    assert client.execute(ask)[0][0] != 77


def test_use_and_set__of_a_session__stay_with_it_and_with_no_other(engine: EngineProcess, client: Client) -> None:
    client.execute("USE llm")
    client.execute("SET max_block_size = 123")

    assert client.execute("SELECT currentDatabase(), getSetting('max_block_size')") == [("llm", 123)]
    with engine.client() as second:
        assert second.execute("SELECT currentDatabase(), getSetting('max_block_size') = 123") == [("llm", 0)]


@tabled
def test_question_about_tables_and_queries__is_answered(client: Client, sql: str, answer: str) -> None:
    client.execute("CREATE TABLE IF NOT EXISTS described (name String) ENGINE = Memory")

    assert answer in str(client.execute(sql)[0][0])


def test_external_table__with_a_query__is_joined_and_gone_afterwards(client: Client) -> None:
    tables = [
        {
            "name": "ext",
            "structure": [("n", "UInt64"), ("s", "String")],
            "data": [{"n": 3, "s": "a"}, {"n": 5, "s": "b"}],
        }
    ]

    rows = client.execute(
        "SELECT number, s FROM numbers(9) AS n9 JOIN ext ON n = number ORDER BY 1", external_tables=tables
    )

    assert rows == [(3, "a"), (5, "b")]
    with pytest.raises(ServerException, match="UNKNOWN_TABLE"):
        client.execute("SELECT * FROM ext")


def test_cancel__while_rows_stream__ends_the_query_and_keeps_the_connection(client: Client) -> None:
    rows = client.execute_iter("SELECT number FROM numbers(100000000000) /* streaming cancel */")
    assert next(rows) == (0,)

    client.cancel()

    assert running(client, "streaming cancel") == 0


def test_cancel__while_aggregating__ends_the_query(engine: EngineProcess, client: Client) -> None:
    with engine.client() as slow:
        slow.establish_connection({})
        slow.connection.send_query(f"{ENDLESS} /* aggregate cancel */")
        slow.connection.send_external_tables(None)
        wait_until(lambda: running(client, "aggregate cancel") == 1)

        slow.cancel()

        assert running(client, "aggregate cancel") == 0


def test_hang_up__of_a_client__kills_its_query(engine: EngineProcess, client: Client) -> None:
    with engine.client() as leaving:
        leaving.establish_connection({})
        leaving.connection.send_query(f"{ENDLESS} /* hang up */")
        leaving.connection.send_external_tables(None)
        wait_until(lambda: running(client, "hang up") == 1)

    wait_until(lambda: running(client, "hang up") == 0)


def test_hang_up__at_once_after_sending__kills_its_query(engine: EngineProcess, client: Client) -> None:
    for _ in range(20):
        with engine.client() as leaving:
            leaving.establish_connection({})
            leaving.connection.send_query(f"{ENDLESS} /* at once */")
            leaving.connection.send_external_tables(None)

    wait_until(lambda: running(client, "at once") == 0)


def test_hang_up__while_rows_stream__kills_its_query(engine: EngineProcess, client: Client) -> None:
    with engine.client() as leaving:
        rows = leaving.execute_iter("SELECT number FROM numbers(100000000000) /* hang up in stream */")
        assert next(rows) == (0,)
        assert running(client, "hang up in stream") == 1
        leaving.connection.socket.shutdown(socket.SHUT_RDWR)

    wait_until(lambda: running(client, "hang up in stream") == 0)


def test_kill_query__by_another_client__is_an_error_and_not_a_short_answer(
    engine: EngineProcess, client: Client
) -> None:
    failures: list[ServerException] = []

    def ask() -> None:
        with engine.client() as victim:
            try:
                victim.execute(f"{ENDLESS} /* to be killed */")
            except ServerException as error:
                failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: running(client, "to be killed") == 1)
    client.execute("KILL QUERY WHERE position(query, '/* to be killed */') > 0 AND query NOT LIKE '%KILL%'")
    thread.join(TIMEOUT_SECONDS)

    assert [error.code for error in failures] == [394]


@pytest.mark.parametrize(
    "packet",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 64, b"\xff" * 64, b"\x00\x05short", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"],
    ids=["http", "zeros", "ones", "cut", "tls"],
)
def test_stranger__sends_something_else__is_shown_out(engine: EngineProcess, client: Client, packet: bytes) -> None:
    with socket.create_connection(("127.0.0.1", engine.port), timeout=TIMEOUT_SECONDS) as stranger:
        stranger.sendall(packet)
        stranger.shutdown(socket.SHUT_WR)
        while stranger.recv(65536):
            pass

    assert client.execute("SELECT 1") == [(1,)]


def test_compression__requested__is_refused_with_a_message(engine: EngineProcess) -> None:
    with engine.client() as client:
        client.execute("SELECT 1")
        client.connection.compression = 1  # The test sets the flag alone, since the codecs are a package of their own.

        with pytest.raises(ServerException, match="compression is not supported on a loopback connection"):
            client.execute("SELECT 1")


def test_old_client__revision_without_parameters__is_refused_in_words(engine: EngineProcess) -> None:
    with engine.client(client_revision=54429) as client, pytest.raises(ServerException, match="older than 54468"):
        client.execute("SELECT 1")


def test_many_connections__opened_and_left__leave_no_trace(engine: EngineProcess, client: Client) -> None:
    for _ in range(300):
        with engine.client() as passing:
            assert passing.execute("SELECT 1") == [(1,)]

    # Clients of other tests left their queries behind, each of which is killed in a moment.
    wait_until(lambda: client.execute("SELECT count() FROM system.processes") == [(1,)])
