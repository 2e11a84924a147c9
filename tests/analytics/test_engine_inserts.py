"""Inserts through the engine: shapes of rows, errors that are reported, and retries that count once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from clickhouse_driver import Client
from clickhouse_driver.errors import ServerException

from tests.analytics.engine_process import EngineProcess
from tests.tables.cases import tabled

ROWS = [
    (n, uuid.UUID(int=n), datetime.fromtimestamp(1_700_000_000 + n, UTC), f"session {n % 7}", Decimal(n), {"k": str(n)})
    for n in range(10_000)
]
TABLE = (
    "CREATE TABLE shape (n UInt32, id UUID, ts DateTime64(6, 'UTC'), s LowCardinality(String), c Decimal(18, 10),"
    " m Map(LowCardinality(String), String)) ENGINE = MergeTree ORDER BY n"
)
NAMES = ("n", "id", "ts", "s", "c", "m")
EXACTLY_ONCE = {
    "async_insert": 0,
    "insert_deduplicate": 1,
    "deduplicate_blocks_in_dependent_materialized_views": 1,
}
# One Null table feeds a base table in two partitions and two rollups.
INGEST = [
    "CREATE TABLE ingest (id UInt32, part UInt8, cost Decimal(18, 10)) ENGINE = Null",
    "CREATE TABLE base (id UInt32, part UInt8, cost Decimal(18, 10)) ENGINE = MergeTree PARTITION BY part ORDER BY id"
    " SETTINGS non_replicated_deduplication_window = 1000",
    "CREATE TABLE per_part (part UInt8, count SimpleAggregateFunction(sum, UInt64),"
    " cost SimpleAggregateFunction(sum, Decimal(38, 10))) ENGINE = AggregatingMergeTree ORDER BY part"
    " SETTINGS non_replicated_deduplication_window = 1000",
    "CREATE TABLE total (one UInt8, count SimpleAggregateFunction(sum, UInt64)) ENGINE = AggregatingMergeTree"
    " ORDER BY one SETTINGS non_replicated_deduplication_window = 1000",
    "CREATE MATERIALIZED VIEW base_mv TO base AS SELECT * FROM ingest",
    "CREATE MATERIALIZED VIEW per_part_mv TO per_part AS"
    " SELECT part, count() AS count, sum(toDecimal128(i.cost, 10)) AS cost FROM ingest AS i GROUP BY part",
    "CREATE MATERIALIZED VIEW total_mv TO total AS SELECT 1 AS one, count() AS count FROM ingest GROUP BY one",
]


@pytest.fixture
def client(engine: EngineProcess) -> Iterator[Client]:
    with engine.client() as connected:
        yield connected
        for (table,) in connected.execute("SELECT name FROM system.tables WHERE database = currentDatabase()"):
            connected.execute(f"DROP TABLE {table} SYNC")


def _shapes() -> dict[str, tuple[Any, bool]]:
    return {
        "tuples": (ROWS, False),
        "dicts": ([dict(zip(NAMES, row, strict=True)) for row in ROWS], False),
        "columnar": ([list(column) for column in zip(*ROWS, strict=True)], True),
        "generator": ((row for row in ROWS), False),
    }


@pytest.mark.parametrize("shape", ["tuples", "dicts", "columnar", "generator"])
def test_insert__ten_thousand_rows_of_any_shape__are_stored_exactly(client: Client, shape: str) -> None:
    client.execute(TABLE)
    data, columnar = _shapes()[shape]

    assert client.execute("INSERT INTO shape VALUES", data, columnar=columnar) == 10_000

    assert client.execute("SELECT * FROM shape ORDER BY n") == ROWS


def test_insert__several_blocks__are_one_insert(client: Client) -> None:
    client.execute(TABLE)

    client.execute("INSERT INTO shape VALUES", ROWS, settings={"insert_block_size": 999})

    assert client.execute("SELECT count(), sum(n) FROM shape") == [(10_000, sum(range(10_000)))]


def test_insert__some_columns_in_another_order__fills_the_rest_with_defaults(client: Client) -> None:
    client.execute(
        "CREATE TABLE partial (a UInt8 DEFAULT 7, b String, `odd name` UInt8, d UInt16 MATERIALIZED a + 1)"
        " ENGINE = MergeTree ORDER BY b"
    )

    client.execute('INSERT INTO llm.partial (`odd name`, "b") VALUES', [(3, "x")])
    client.execute("INSERT INTO partial VALUES", [(1, "y", 2)])

    assert client.execute("SELECT a, b, `odd name`, d FROM partial ORDER BY b") == [(7, "x", 3, 8), (1, "y", 2, 2)]


def test_insert__no_rows__stores_nothing(client: Client) -> None:
    client.execute(TABLE)

    client.execute("INSERT INTO shape VALUES", [])

    assert client.execute("SELECT count() FROM shape") == [(0,)]


def test_insert__inline_values_and_select__work_as_statements(client: Client) -> None:
    client.execute("CREATE TABLE inline (a UInt8, s String) ENGINE = MergeTree ORDER BY a")

    client.execute("INSERT INTO inline VALUES (1, 'VALUES'), (2, 'it''s')")
    client.execute("INSERT INTO inline SELECT {a:UInt8}, {s:String}", {"a": 3, "s": "x'y"})

    assert client.execute("SELECT * FROM inline ORDER BY a") == [(1, "VALUES"), (2, "it's"), (3, "x'y")]


@tabled
def test_insert__refused_while_writing__is_an_error(client: Client, definition: str, code: int) -> None:
    client.execute(definition)

    with pytest.raises(ServerException) as caught:
        client.execute(
            "INSERT INTO bad VALUES", [(n,) for n in range(200)], settings={"max_partitions_per_insert_block": 100}
        )

    assert caught.value.code == code
    assert client.execute("SELECT count() FROM bad") == [(0,)]


def test_insert__view_throws__is_an_error(client: Client) -> None:
    client.execute("CREATE TABLE source (a UInt8) ENGINE = Null")
    client.execute("CREATE TABLE target (a UInt8) ENGINE = MergeTree ORDER BY a")
    client.execute("CREATE MATERIALIZED VIEW v TO target AS SELECT throwIf(a = 3) AS a FROM source")

    with pytest.raises(ServerException) as caught:
        client.execute("INSERT INTO source VALUES", [(1,), (3,)])

    assert caught.value.code == 395


@pytest.mark.parametrize(
    ("statement", "code"),
    [("INSERT INTO no_such_table VALUES", 60), ("INSERT INTO shape (n, nope) VALUES", 16)],
)
def test_insert__wrong_target__is_an_error_before_any_data(client: Client, statement: str, code: int) -> None:
    client.execute(TABLE)

    with pytest.raises(ServerException) as caught:
        client.execute(statement, [(1, 1)])

    assert caught.value.code == code


def test_insert__same_token_five_times__counts_once_in_base_and_rollups(client: Client) -> None:
    for statement in INGEST:
        client.execute(statement)
    rows = [(n, n % 2, Decimal("0.1")) for n in range(100)]

    for _ in range(5):
        client.execute("INSERT INTO ingest VALUES", rows, settings={**EXACTLY_ONCE, "insert_deduplication_token": "a"})

    assert _counts(client) == (100, 100, Decimal(10), 100)


def test_insert__another_token_with_equal_rows__counts_again(client: Client) -> None:
    for statement in INGEST:
        client.execute(statement)
    rows = [(n, n % 2, Decimal("0.1")) for n in range(100)]

    for token in ("a", "b", "a", "b", "c"):
        client.execute(
            "INSERT INTO ingest VALUES", rows, settings={**EXACTLY_ONCE, "insert_deduplication_token": token}
        )

    assert _counts(client) == (300, 300, Decimal(30), 300)


def _counts(client: Client) -> tuple[int, int, Decimal, int]:
    [(base,)] = client.execute("SELECT count() FROM base")
    [(parts, cost)] = client.execute("SELECT sum(count), sum(cost) FROM per_part")
    [(total,)] = client.execute("SELECT sum(count) FROM total")
    return base, parts, cost, total


@pytest.mark.parametrize("names", ["n, `e.a`, e.b", "n, e . a, `e`.b", 'n, "e"."a", "e.b"'])
def test_insert__columns_of_a_nested__found_by_their_dotted_names(client: Client, names: str) -> None:
    client.execute("CREATE TABLE nested (n UInt8, e Nested(a DateTime64(9), b Map(String, String))) ENGINE = Memory")

    client.execute(f"INSERT INTO nested ({names}) VALUES", [(1, [1, 2], [{"k": "v"}, {}])])

    assert client.execute("SELECT toUnixTimestamp64Nano(e.a[2]), e.b FROM nested") == [(2, [{"k": "v"}, {}])]
