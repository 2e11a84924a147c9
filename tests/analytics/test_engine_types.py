"""Every column type in use, and strings that break naive escaping, pass through the engine and back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from clickhouse_driver import Client

from tests.analytics.engine_process import EngineProcess

NASTY = [
    "",
    "it's",
    'a "quoted" word',
    "back\\slash",
    "trailing backslash\\",
    "\\'; DROP TABLE llm.requests; --",
    "tab\tand\nnew line\r\n",
    "nul\0inside",
    "\b\f\a\v",
    "100% %s %(name)s {x:String}",
    "naïve Ünïcode 漢字 🚀",
    "/* comment */ -- comment",
    "`back`tick",
    "\\N",
    "NULL",
    "x" * 100_000,
]

# Each entry is a type with values whose round trip must be exact.
COLUMNS: list[tuple[str, list[Any]]] = [
    ("UUID", [uuid.UUID(int=0), uuid.UUID("0190f3a1-7b1c-7def-8abc-0123456789ab")]),
    ("DateTime64(6, 'UTC')", [datetime(2026, 2, 3, 4, 5, 6, 789_012, UTC), datetime(1970, 1, 1, tzinfo=UTC)]),
    ("DateTime64(9, 'UTC')", [datetime(2026, 2, 3, 4, 5, 6, 789_012, UTC)]),
    ("DateTime('UTC')", [datetime(2026, 2, 3, 4, 5, 6)]),  # noqa: DTZ001 - the driver's form of whole seconds
    ("Date", [date(2026, 2, 3)]),
    ("Date32", [date(1950, 1, 1)]),
    ("Decimal(18, 10)", [Decimal("0.0000000001"), Decimal("99999999.9999999999"), Decimal("-1.5000000000")]),
    ("Decimal(38, 10)", [Decimal("9999999999999999999999999999.9999999999")]),
    ("Decimal(9, 2)", [Decimal("1234567.89")]),
    ("Map(LowCardinality(String), String)", [{}, {"k": "v", "": "", "quote'": "tab\t"}]),
    ("Map(String, Array(UInt64))", [{"a": [1, 2], "b": []}]),
    ("Array(String)", [[], ["a", "", "it's"]]),
    ("Array(LowCardinality(String))", [[], ["a", "b", "a"]]),
    ("Array(Array(UInt16))", [[], [[], [1], [2, 3]]]),
    ("LowCardinality(String)", ["", "gpt", "claude", "gpt"]),
    ("LowCardinality(Nullable(String))", [None, "a", "", "a"]),
    ("LowCardinality(FixedString(2))", ["ab", "cd"]),
    ("Bool", [True, False]),
    ("FixedString(4)", ["abcd", "ab"]),
    ("UInt8", [0, 255]),
    ("UInt16", [0, 2**16 - 1]),
    ("UInt32", [0, 2**32 - 1]),
    ("UInt64", [0, 2**64 - 1]),
    ("Int8", [-128, 127]),
    ("Int64", [-(2**63), 2**63 - 1]),
    ("Int128", [-(2**127), 2**127 - 1]),
    ("Float32", [0.5]),
    ("Float64", [1.1, float("inf")]),
    ("Nullable(UInt32)", [None, 0, 7]),
    ("Nullable(String)", [None, "", "NULL"]),
    ("Nullable(Decimal(18, 10))", [None, Decimal("1.0000000001")]),
    ("Enum8('a,b' = 1, 'it\\'s' = 2, '(' = 3)", ["a,b", "("]),
    ("Enum16('x' = 1000)", ["x"]),
    ("Tuple(String, UInt8)", [("a", 1)]),
    ("Tuple(name LowCardinality(String), `odd name` Array(Nullable(UInt8)))", [("n", [1, None])]),
    ("Array(Tuple(String, LowCardinality(String)))", [[], [("a", "b"), ("c", "b")]]),
    ("SimpleAggregateFunction(sum, UInt64)", [2**63]),
    ("SimpleAggregateFunction(sum, Decimal(38, 10))", [Decimal("12.0000000001")]),
    ("SimpleAggregateFunction(anyLast, String)", ["last"]),
    ("SimpleAggregateFunction(max, DateTime64(6, 'UTC'))", [datetime(2026, 2, 3, 4, 5, 6, 789_012, UTC)]),
    ("SimpleAggregateFunction(groupUniqArrayArray, Array(String))", [["b"], []]),
    ("IPv4", []),
]


@pytest.fixture
def client(engine: EngineProcess) -> Iterator[Client]:
    with engine.client() as connected:
        yield connected


def _expected(type_name: str, value: Any) -> Any:
    if "FixedString" in type_name and isinstance(value, str):
        return value.ljust(int(type_name.rstrip(")").rpartition("(")[2]), "\0").rstrip("\0")
    return value


@pytest.mark.parametrize(("type_name", "values"), COLUMNS, ids=[type_name for type_name, _ in COLUMNS])
def test_column__values_of_every_type_in_use__come_back_exactly(
    client: Client, type_name: str, values: list[Any]
) -> None:
    client.execute("DROP TABLE IF EXISTS one_type")
    client.execute(f"CREATE TABLE one_type (n UInt32, v {type_name}) ENGINE = MergeTree ORDER BY n")
    client.execute("INSERT INTO one_type (n, v) VALUES", list(enumerate(values)))

    rows, columns = client.execute("SELECT v, n FROM one_type ORDER BY n", with_column_types=True)

    assert [value for value, _ in rows] == [_expected(type_name, value) for value in values]
    assert [name for name, _ in columns] == ["v", "n"]


def test_columns__all_types_in_one_block__keep_their_borders(client: Client) -> None:
    chosen = [(type_name, values) for type_name, values in COLUMNS if values]
    names = ", ".join(f"c{index} {type_name}" for index, (type_name, _) in enumerate(chosen))
    client.execute("DROP TABLE IF EXISTS every_type")
    client.execute(f"CREATE TABLE every_type (n UInt32, {names}) ENGINE = MergeTree ORDER BY n")
    rows = [(n, *(values[n % len(values)] for _, values in chosen)) for n in range(1000)]

    client.execute("INSERT INTO every_type VALUES", rows)

    expected = [
        (n, *(_expected(type_name, values[n % len(values)]) for type_name, values in chosen)) for n in range(1000)
    ]
    assert client.execute("SELECT * FROM every_type ORDER BY n") == expected


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_parameter__nasty_string__arrives_exactly(client: Client, text: str) -> None:
    sent = {"x": text, "list": [text, "plain"]}

    [row] = client.execute("SELECT {x:String}, length({x:String}), {list:Array(String)}, {x:String} LIKE '%'", sent)

    assert row == (text, len(text.encode()), [text, "plain"], 1)


def test_insert__nasty_strings__are_stored_exactly(client: Client) -> None:
    client.execute("DROP TABLE IF EXISTS nasty")
    client.execute(
        "CREATE TABLE nasty (n UInt8, s String, l LowCardinality(String), a Array(String),"
        " m Map(LowCardinality(String), String)) ENGINE = MergeTree ORDER BY n"
    )
    rows = [(n, text, text, [text, text], {text: text}) for n, text in enumerate(NASTY)]

    client.execute("INSERT INTO nasty VALUES", rows)

    assert client.execute("SELECT * FROM nasty ORDER BY n") == rows
    for n, text in enumerate(NASTY):
        assert client.execute("SELECT n FROM nasty WHERE s = {s:String} AND n = {n:UInt8}", {"s": text, "n": n}) == [
            (n,)
        ]


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("UUID", uuid.UUID("0190f3a1-7b1c-7def-8abc-0123456789ab")),
        ("UInt64", 2**64 - 1),
        ("Int64", -(2**63)),
        ("Float64", 1.25),
        ("Date", date(2026, 2, 3)),
        ("Decimal(38, 10)", Decimal("9999999999999999999999999999.9999999999")),
        ("Array(UInt64)", [1, 2**64 - 1]),
        ("Array(UUID)", [uuid.UUID("0190f3a1-7b1c-7def-8abc-0123456789ab")]),
    ],
)
def test_parameter__other_types__arrive_exactly(client: Client, type_name: str, value: Any) -> None:
    assert client.execute(f"SELECT {{x:{type_name}}}", {"x": value}) == [(value,)]


def test_result__type_without_a_known_layout__is_refused_in_words(client: Client) -> None:
    with pytest.raises(Exception, match="cannot carry columns of type AggregateFunction") as caught:
        client.execute("SELECT uniqState(number) FROM numbers(3)")

    assert caught.value.code == 48  # type: ignore[attr-defined] # the driver's ServerException


def test_result__two_million_rows__come_block_by_block(client: Client) -> None:
    rows = client.execute_iter("SELECT number, toString(number) FROM numbers(2000000)")

    count = total = 0
    for number, text in rows:
        assert str(number) == text
        count += 1
        total += number
    assert (count, total) == (2_000_000, 1_999_999_000_000)


def test_engine_log__after_all_types__holds_no_value(engine: EngineProcess, client: Client, tmp_path: Path) -> None:
    client.execute("SELECT {x:String}", {"x": "a-secret-prompt"})
    with pytest.raises(Exception, match="a-secret-prompt"):
        client.execute("SELECT throwIf(1, {x:String})", {"x": "a-secret-prompt"})

    assert "a-secret-prompt" not in engine.log()
