"""Finds where a column of ClickHouse's Native format ends, without decoding its values.

The protocol has a byte per column since revision 54454 that chDB's Native lacks, so every block is split at its column
borders. Every column starts with the state prefixes of its whole type, then its data. Layouts:
https://clickhouse.com/docs/interfaces/formats/Native and the `Serialization*` classes of ClickHouse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from analytics.clickhouse.engine.byte_reader import ByteReader, PacketError

_WIDTHS = {
    "UInt8": 1, "UInt16": 2, "UInt32": 4, "UInt64": 8, "UInt128": 16, "UInt256": 32,
    "Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8, "Int128": 16, "Int256": 32,
    "BFloat16": 2, "Float32": 4, "Float64": 8, "Bool": 1, "UUID": 16, "IPv4": 4, "IPv6": 16, "Nothing": 1,
    "Date": 2, "Date32": 4, "DateTime": 4, "DateTime64": 8, "Time": 4, "Time64": 8, "Enum8": 1, "Enum16": 2,
    "Decimal32": 4, "Decimal64": 8, "Decimal128": 16, "Decimal256": 32,
}  # fmt: skip
_ALIASES = {
    "Point": "Tuple(Float64, Float64)",
    "Ring": "Array(Point)",
    "LineString": "Array(Point)",
    "Polygon": "Array(Ring)",
    "MultiLineString": "Array(LineString)",
    "MultiPolygon": "Array(Polygon)",
}
_HEAD = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_ELEMENT_NAME = re.compile(r"\s*(?:`(?:[^`\\]|\\.|``)*`|\w+)\s+(?=\w)", re.DOTALL)
# The pattern takes quoted text as one token, so that brackets and commas inside it do not count.
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.|``)*`|"(?:[^"\\]|\\.|"")*"|[(),]""", re.DOTALL)
_HAS_ADDITIONAL_KEYS = 1 << 9


class UnsupportedTypeError(Exception):
    pass


class Layout(Protocol):
    def skip_prefix(self, reader: ByteReader) -> None: ...

    def skip_data(self, reader: ByteReader, rows: int) -> None: ...


class _NoPrefix:
    def skip_prefix(self, reader: ByteReader) -> None:
        """Does nothing: plain types have no state prefix."""


@dataclass(frozen=True)
class Fixed(_NoPrefix):
    width: int

    def skip_data(self, reader: ByteReader, rows: int) -> None:
        reader.skip(self.width * rows)


@dataclass(frozen=True)
class Text(_NoPrefix):
    def skip_data(self, reader: ByteReader, rows: int) -> None:
        reader.skip_strings(rows)


@dataclass(frozen=True)
class Nullable:
    inner: Layout

    def skip_prefix(self, reader: ByteReader) -> None:
        self.inner.skip_prefix(reader)

    def skip_data(self, reader: ByteReader, rows: int) -> None:
        reader.skip(rows)
        self.inner.skip_data(reader, rows)


@dataclass(frozen=True)
class Array:
    inner: Layout

    def skip_prefix(self, reader: ByteReader) -> None:
        self.inner.skip_prefix(reader)

    def skip_data(self, reader: ByteReader, rows: int) -> None:
        if not rows:
            return
        reader.skip(8 * (rows - 1))
        self.inner.skip_data(reader, reader.uint64())


@dataclass(frozen=True)
class Tuple:
    elements: tuple[Layout, ...]

    def skip_prefix(self, reader: ByteReader) -> None:
        for element in self.elements:
            element.skip_prefix(reader)

    def skip_data(self, reader: ByteReader, rows: int) -> None:
        for element in self.elements:
            element.skip_data(reader, rows)


@dataclass(frozen=True)
class LowCardinality:
    """A dictionary and the indexes into it, in portions. A column without rows has no dictionary."""

    dictionary: Layout

    def skip_prefix(self, reader: ByteReader) -> None:
        reader.skip(8)

    def skip_data(self, reader: ByteReader, rows: int) -> None:
        while rows > 0:
            flags = reader.uint64()
            if not flags & _HAS_ADDITIONAL_KEYS:
                raise PacketError("a LowCardinality column has no dictionary of its own")
            self.dictionary.skip_data(reader, reader.uint64())
            portion = reader.uint64()
            if not 0 < portion <= rows:
                raise PacketError("a LowCardinality column has a wrong number of rows")
            reader.skip(portion << (flags & 0xFF))
            rows -= portion


@lru_cache(maxsize=4096)
def layout_of(type_name: str) -> Layout:
    match = _HEAD.match(type_name)
    if match is None:
        raise UnsupportedTypeError(type_name)
    name, inner = match.group(1), match.group(2) or ""
    if name in _ALIASES:
        return layout_of(_ALIASES[name])
    if name in _WIDTHS:
        return Fixed(_WIDTHS[name])
    if name.startswith("Interval"):
        return Fixed(8)
    return _compound(name, inner)


def _compound(name: str, inner: str) -> Layout:
    match name:
        case "String":
            return Text()
        case "FixedString":
            return Fixed(int(inner))
        case "Decimal":
            return Fixed(_decimal_width(int(split_arguments(inner)[0])))
        case "Nullable":
            return Nullable(layout_of(inner))
        case "Array":
            return Array(layout_of(inner))
        case "Map" | "Nested":
            return Array(_tuple(inner))
        case "Tuple":
            return _tuple(inner)
        case "LowCardinality":
            return LowCardinality(layout_of(_without_nullable(inner)))
        case "SimpleAggregateFunction":
            return layout_of(split_arguments(inner)[-1])
        case _:
            raise UnsupportedTypeError(name)


def _tuple(inner: str) -> Layout:
    if not inner.strip():
        return Fixed(1)  # An empty tuple is written as one byte a row.
    return Tuple(tuple(layout_of(_ELEMENT_NAME.sub("", element, count=1)) for element in split_arguments(inner)))


def _without_nullable(type_name: str) -> str:
    # Null is an index of the dictionary, so the dictionary itself is never nullable.
    match = _HEAD.match(type_name)
    return match.group(2) if match is not None and match.group(1) == "Nullable" else type_name


def _decimal_width(precision: int) -> int:
    return 4 if precision <= 9 else 8 if precision <= 18 else 16 if precision <= 38 else 32


def split_arguments(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes: `Enum8('a,b' = 1), Map(String, UInt8)` has two parts."""
    parts: list[str] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
        elif mark == "," and depth == 0:
            parts.append(text[start : token.start()].strip())
            start = token.end()
    parts.append(text[start:].strip())
    return parts
