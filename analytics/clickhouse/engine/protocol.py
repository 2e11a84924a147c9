"""Packets of ClickHouse's native TCP protocol at revision 54468, the highest that `clickhouse-driver` 0.2.11 speaks.

Source: https://clickhouse.com/docs/native-protocol and `src/Core/ProtocolDefines.h`. Peers negotiate the lower of their
revisions; supporting only one keeps the reading free of branches.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from analytics.clickhouse.engine.byte_reader import ByteReader, PacketError
from analytics.clickhouse.engine.native_blocks import EMPTY_BLOCK, Column, encode_string, encode_varint

REVISION = 54468
_MAX_QUERY_BYTES = 16 << 20
_TCP_INTERFACE = 1
_NO_QUERY_KIND = 0


class ClientPacket(IntEnum):
    HELLO = 0
    QUERY = 1
    DATA = 2
    CANCEL = 3
    PING = 4


class ServerPacket(IntEnum):
    HELLO = 0
    DATA = 1
    EXCEPTION = 2
    PROGRESS = 3
    PONG = 4
    END_OF_STREAM = 5
    PROFILE_INFO = 6
    TABLE_COLUMNS = 11
    PROFILE_EVENTS = 14


@dataclass(frozen=True)
class Hello:
    client_name: str
    revision: int
    database: str
    user: str
    password: str


@dataclass(frozen=True)
class Query:
    """`parameters` are still quoted and escaped as on the wire."""

    query_id: str
    text: str
    settings: dict[str, str]
    parameters: dict[str, str]
    compressed: bool


def read_hello(reader: ByteReader) -> Hello:
    name = reader.string()
    for _ in ("major version", "minor version"):
        reader.varint()
    return Hello(name, reader.varint(), reader.string(), reader.string(), reader.string())


def read_query(reader: ByteReader) -> Query:
    query_id = reader.string()
    _skip_client_info(reader)
    settings = _read_settings(reader)
    # The secret of a cluster's other nodes is empty, and the stage of processing is always the whole query.
    reader.raw_string()
    reader.varint()
    compressed = bool(reader.varint())
    text = reader.string(_MAX_QUERY_BYTES)
    return Query(query_id, text, settings, _read_settings(reader), compressed)


def _skip_client_info(reader: ByteReader) -> None:
    if reader.byte() == _NO_QUERY_KIND:
        return
    for _ in ("initial user", "initial query id", "initial address"):
        reader.raw_string()
    # The initial query's start time has 8 bytes.
    reader.skip(8)
    if reader.byte() != _TCP_INTERFACE:
        raise PacketError("a query over an interface other than TCP")
    for _ in ("operating system user", "host name", "client name"):
        reader.raw_string()
    for _ in ("major version", "minor version", "revision"):
        reader.varint()
    reader.raw_string()  # The client's quota key has no meaning here.
    for _ in ("depth of distribution", "patch version"):
        reader.varint()
    # The byte tells if a trace context follows.
    if reader.byte():
        reader.skip(24)
        reader.raw_string()
        reader.skip(1)
    for _ in ("collaborates with initiator", "number of replicas", "number of this replica"):
        reader.varint()


def _read_settings(reader: ByteReader) -> dict[str, str]:
    settings = {}
    while name := reader.string():
        reader.varint()  # A setting's flags (important, custom) change nothing here.
        settings[name] = reader.string(_MAX_QUERY_BYTES)
    return settings


def hello(*, name: str, version: tuple[int, int, int], time_zone: str) -> bytes:
    major, minor, patch = version
    return b"".join(
        (
            encode_varint(ServerPacket.HELLO),
            encode_string(name),
            encode_varint(major),
            encode_varint(minor),
            encode_varint(REVISION),
            encode_string(time_zone),
            encode_string(name),
            encode_varint(patch),
            # There are no rules of password complexity, and a cluster's secret has no nonce.
            encode_varint(0),
            bytes(8),
        )
    )


def exception(code: int, name: str, message: str) -> bytes:
    return b"".join(
        (
            encode_varint(ServerPacket.EXCEPTION),
            struct.pack("<i", code),
            encode_string(name),
            encode_string(message),
            # An exception has no stack trace and no nested exception.
            encode_string(""),
            b"\x00",
        )
    )


def data(block: bytes) -> bytes:
    return encode_varint(ServerPacket.DATA) + encode_string("") + block


def profile_events() -> bytes:
    """Returns an empty block of counters: the client waits for this packet after each block it inserts."""
    return encode_varint(ServerPacket.PROFILE_EVENTS) + encode_string("") + EMPTY_BLOCK


def progress(*, rows: int, size: int, written_rows: int = 0, written_bytes: int = 0, elapsed_ns: int = 0) -> bytes:
    counters = (rows, size, rows, size, written_rows, written_bytes, elapsed_ns)
    return encode_varint(ServerPacket.PROGRESS) + b"".join(map(encode_varint, counters))


def profile_info(*, rows: int, blocks: int, size: int) -> bytes:
    return b"".join(
        (
            encode_varint(ServerPacket.PROFILE_INFO),
            encode_varint(rows),
            encode_varint(blocks),
            encode_varint(size),
            # The packet says that no limit was applied and that the rows before a limit were not counted.
            b"\x00",
            encode_varint(0),
            b"\x00",
        )
    )


def table_columns(columns: tuple[Column, ...]) -> bytes:
    lines = "".join(f"{quote_identifier(column.name)} {column.type}\n" for column in columns)
    description = f"columns format version: 1\n{len(columns)} columns:\n{lines}"
    return encode_varint(ServerPacket.TABLE_COLUMNS) + encode_string("") + encode_string(description)


def pong() -> bytes:
    return encode_varint(ServerPacket.PONG)


def end_of_stream() -> bytes:
    return encode_varint(ServerPacket.END_OF_STREAM)


def quote_identifier(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
