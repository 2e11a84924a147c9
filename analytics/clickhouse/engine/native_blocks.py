"""Converts blocks between chDB's FORMAT Native and the wire, which adds block information and a flag byte per column.

Neither direction decodes a value: bytes are cut at the column borders and joined again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from analytics.clickhouse.engine.byte_reader import ByteReader, PacketError
from analytics.clickhouse.engine.native_types import layout_of

# Field 1 (is_overflows, one byte) = 0, field 2 (bucket_num, Int32) = -1, then the end of the block information.
BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"
EMPTY_BLOCK = BLOCK_INFO + b"\x00\x00"
_ORDINARY_SERIALIZATION = b"\x00"
_MAX_COLUMNS = 10_000
_MAX_ROWS = 100_000_000


@dataclass(frozen=True)
class Column:
    name: str
    type: str


def encode_varint(value: int) -> bytes:
    octets = bytearray()
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def encode_string(text: str) -> bytes:
    octets = text.encode("utf-8", "surrogateescape")
    return encode_varint(len(octets)) + octets


def header_block(columns: Sequence[Column]) -> bytes:
    parts = [BLOCK_INFO, encode_varint(len(columns)), b"\x00"]
    for column in columns:
        parts += (encode_string(column.name), encode_string(column.type), _ORDINARY_SERIALIZATION)
    return b"".join(parts)


@dataclass(frozen=True)
class Block:
    columns: tuple[Column, ...]
    rows: int
    encoded: bytes


def blocks_of_result(native: bytes) -> Iterator[Block]:
    reader = ByteReader(native)
    while reader.pending:
        yield _next_block(reader)
        reader.compact()


def _next_block(reader: ByteReader) -> Block:
    start = reader.position
    column_count, rows = reader.varint(), reader.varint()
    parts: list[bytes | bytearray] = [BLOCK_INFO, reader.buffer[start : reader.position]]
    columns = []
    for _ in range(column_count):
        start = reader.position
        column = Column(reader.string(), reader.string())
        columns.append(column)
        parts += (reader.buffer[start : reader.position], _ORDINARY_SERIALIZATION)
        parts.append(_column_data(reader, column, rows))
    return Block(tuple(columns), rows, b"".join(parts))


def read_wire_block(reader: ByteReader, *, limit: int) -> Block:
    native = bytearray()
    columns, rows = copy_wire_block(reader, native.extend, limit=limit)
    return Block(columns, rows, bytes(native))


def copy_wire_block(
    reader: ByteReader, write: Callable[[memoryview], object], *, limit: int
) -> tuple[tuple[Column, ...], int]:
    """Streams the client's next block to `write` in FORMAT Native; a block without rows writes nothing. Returns its
    columns and its number of rows.

    Raises PacketError for a malformed block or one above `limit` bytes, perhaps after writing a part of it.
    """
    _skip_block_info(reader)
    column_count, rows = reader.varint(), reader.varint()
    if column_count > _MAX_COLUMNS or rows > _MAX_ROWS:
        raise PacketError(f"a block has {column_count} columns and {rows} rows")
    target = _Limited(write if rows else _drop, limit)
    target.write(memoryview(encode_varint(column_count) + encode_varint(rows)))
    columns = []
    for _ in range(column_count):
        with reader.passed_on(target.write):
            column = Column(reader.string(), reader.string())
        columns.append(column)
        if reader.byte():
            raise PacketError(f"column {column.name} comes in a custom serialization")
        with reader.passed_on(target.write):
            _skip_column_data(reader, column, rows)
    return tuple(columns), rows


class _Limited:
    def __init__(self, write: Callable[[memoryview], object], limit: int) -> None:
        self._write = write
        self._limit = limit
        self._size = 0

    def write(self, piece: memoryview) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise PacketError(f"a block has more than {self._limit} bytes")
        self._write(piece)


def _drop(piece: memoryview) -> None:
    """Takes the column names of a block without rows, which are not written."""


def _column_data(reader: ByteReader, column: Column, rows: int) -> bytearray:
    start = reader.position
    _skip_column_data(reader, column, rows)
    return reader.buffer[start : reader.position]


def _skip_column_data(reader: ByteReader, column: Column, rows: int) -> None:
    if rows:
        layout = layout_of(column.type)
        layout.skip_prefix(reader)
        layout.skip_data(reader, rows)


def _skip_block_info(reader: ByteReader) -> None:
    while field := reader.varint():
        if field == 1:
            reader.skip(1)
        elif field == 2:
            reader.skip(4)
        else:
            raise PacketError(f"unknown field {field} of a block's information")
