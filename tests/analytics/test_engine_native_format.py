"""The borders of columns in the Native format are found without decoding: for any cut of the stream, and for malformed
input."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.clickhouse.engine.byte_reader import ByteReader, PacketError
from analytics.clickhouse.engine.native_blocks import (
    BLOCK_INFO,
    copy_wire_block,
    encode_string,
    encode_varint,
    read_wire_block,
)
from analytics.clickhouse.engine.native_types import (
    Fixed,
    LowCardinality,
    Nullable,
    Text,
    Tuple,
    UnsupportedTypeError,
    layout_of,
    split_arguments,
)
from analytics.clickhouse.engine.statement import first_word, insert_target, parameter_text, set_statement
from tests.tables.cases import tabled


def wire_block(texts: list[str]) -> bytes:
    column = encode_string("s") + encode_string("String") + b"\0" + b"".join(map(encode_string, texts))
    return BLOCK_INFO + encode_varint(1) + encode_varint(len(texts)) + column


def native_block(texts: list[str]) -> bytes:
    column = encode_string("s") + encode_string("String") + b"".join(map(encode_string, texts))
    return encode_varint(1) + encode_varint(len(texts)) + column


@given(
    texts=st.lists(st.one_of(st.text(), st.integers(100, 40_000).map("x".__mul__)), max_size=60),
    seed=st.integers(),
)
def test_read_wire_block__any_cut_of_the_stream__gives_the_same_block(texts: list[str], seed: int) -> None:
    stream = bytearray(wire_block(texts))
    cut = random.Random(seed)

    def receive(limit: int) -> bytes:
        size = cut.choice((1, 2, 3, 7, 1000, limit))
        piece = bytes(stream[:size])
        del stream[:size]
        return piece

    block = read_wire_block(ByteReader(receive=receive), limit=1 << 30)

    assert (block.rows, block.encoded) == (len(texts), native_block(texts) if texts else b"")


@given(value=st.integers(0, 2**64 - 1))
def test_varint__any_value__comes_back(value: int) -> None:
    assert ByteReader(encode_varint(value)).varint() == value


@pytest.mark.parametrize("octets", [b"\xff" * 11, b"\x80" * 20])
def test_varint__longer_than_64_bits__is_refused(octets: bytes) -> None:
    with pytest.raises(PacketError, match="longer than 64 bits"):
        ByteReader(octets).varint()


def test_string__longer_than_its_limit__is_refused_before_it_is_read() -> None:
    with pytest.raises(PacketError, match="exceeds the limit"):
        ByteReader(encode_varint(2**40)).string()


def test_read_wire_block__above_the_limit__is_refused() -> None:
    with pytest.raises(PacketError, match="more than 10 bytes"):
        read_wire_block(ByteReader(wire_block(["x" * 100])), limit=10)


@pytest.mark.parametrize("texts", [["x" * 20_000] * 1000, ["x" * 20_000_000]], ids=["many strings", "a long string"])
def test_copy_wire_block__column_of_many_bytes__is_never_in_memory_as_a_whole(texts: list[str]) -> None:
    stream, written = memoryview(wire_block(texts)), bytearray()
    most = 0

    def receive(limit: int) -> bytes:
        nonlocal stream, most
        most = max(most, len(reader.buffer))
        piece, stream = bytes(stream[:limit]), stream[limit:]
        return piece

    reader = ByteReader(receive=receive)

    columns, rows = copy_wire_block(reader, written.extend, limit=1 << 30)

    assert ([column.name for column in columns], rows) == (["s"], len(texts))
    assert written == native_block(texts)
    assert most < 1 << 20


def test_copy_wire_block__above_the_limit__is_refused_before_it_is_received() -> None:
    sent = 0

    def receive(limit: int) -> bytes:
        nonlocal sent
        head = b"" if sent else BLOCK_INFO + encode_varint(1) + encode_varint(1) + encode_string("s")
        sent += limit
        return head + encode_string("String") + b"\0" + encode_varint(2**40) if head else bytes(limit)

    with pytest.raises(PacketError, match="more than 1000000 bytes"):
        copy_wire_block(ByteReader(receive=receive), bytearray().extend, limit=1_000_000)
    assert sent < 4_000_000


def test_read_wire_block__cut_short__is_the_end_of_the_stream() -> None:
    whole = wire_block(["a", "b" * 300])
    for length in range(len(whole)):
        with pytest.raises(EOFError):
            read_wire_block(ByteReader(whole[:length]), limit=1 << 20)


@tabled
def test_split_arguments__quotes_and_brackets__do_not_split(text: str, parts: list[str]) -> None:
    assert split_arguments(text) == parts


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("Decimal(9, 2)", Fixed(4)),
        ("Decimal(18, 10)", Fixed(8)),
        ("Decimal(38, 10)", Fixed(16)),
        ("Decimal(76, 10)", Fixed(32)),
        ("DateTime64(9, 'UTC')", Fixed(8)),
        ("Nullable(String)", Nullable(Text())),
        ("LowCardinality(Nullable(String))", LowCardinality(Text())),
        ("SimpleAggregateFunction(sum, Decimal(38, 10))", Fixed(16)),
        ("Tuple(a UInt8, `b c` String)", Tuple((Fixed(1), Text()))),
        ("IntervalDay", Fixed(8)),
    ],
)
def test_layout__type_name__is_known(name: str, layout: object) -> None:
    assert layout_of(name) == layout


@pytest.mark.parametrize("name", ["AggregateFunction(uniq, String)", "JSON", "Dynamic", "Array(Variant(String))", "?"])
def test_layout__unknown_type__is_refused(name: str) -> None:
    with pytest.raises(UnsupportedTypeError):
        layout_of(name)


@tabled
def test_parameter_text__wire_form__loses_one_level_of_escapes(wire: str, text: str) -> None:
    assert parameter_text(wire) == text


@tabled
def test_first_word__comments_and_brackets__are_skipped(sql: str, word: str) -> None:
    assert first_word(sql) == word


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1", "INSERT INTO t SELECT 1", "INSERT INTO t VALUES (1)", "INSERT INTO t (a) SELECT 'x VALUES'", "VALUES"],
)
def test_insert_target__no_data_follows__is_none(sql: str) -> None:
    assert insert_target(sql) is None


def test_insert_target__names_in_quotes__are_unquoted() -> None:
    target = insert_target('/* x */ insert into db.`t` (`a b`, "c", d) SETTINGS async_insert = 0 VALUES ;')

    assert target is not None
    assert (target.table, target.columns, target.settings) == ("db.`t`", ("a b", "c", "d"), "async_insert = 0")


def test_set_statement__values__are_quoted() -> None:
    assert set_statement({"a": "1", "b": "it's \\"}) == r"SET a = '1', b = 'it\'s \\'"
