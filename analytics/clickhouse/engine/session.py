from __future__ import annotations

import hmac
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from analytics.clickhouse.engine import protocol, statement
from analytics.clickhouse.engine.byte_reader import ByteReader, PacketError
from analytics.clickhouse.engine.chdb_connection import ChdbConnection, ChdbEngine, Chunk
from analytics.clickhouse.engine.errors import QUERY_WAS_CANCELLED, EngineError
from analytics.clickhouse.engine.insert_data import InsertData, insert_data
from analytics.clickhouse.engine.native_blocks import (
    Block,
    Column,
    blocks_of_result,
    copy_wire_block,
    header_block,
    read_wire_block,
)
from analytics.clickhouse.engine.native_types import UnsupportedTypeError
from analytics.clickhouse.engine.protocol import ClientPacket, Query
from analytics.clickhouse.engine.rights import SCRATCH
from analytics.clickhouse.engine.statement import InsertTarget
from analytics.clickhouse.engine.watcher import RunningQuery, Watcher

logger = logging.getLogger("analytics.engine")

SERVER_NAME = "ClickHouse"
_MAX_INSERT_BYTES = 256 << 20
_MAX_STICKY = 64
_NO_SUCH_COLUMN = 16
_UNEXPECTED_PACKET = 101
_NOT_IMPLEMENTED = 48
_ACCESS_DENIED = 497
_AUTHENTICATION_FAILED = 516
_HELLO_SECONDS = 10.0


@dataclass(frozen=True)
class Access:
    """The one user that may connect, and its database. Scratch databases whose names begin with it are allowed too."""

    user: str
    password: str
    database: str

    def __post_init__(self) -> None:
        if not self.password:
            raise ValueError("the engine accepts nobody without a password")

    def allows(self, database: str) -> bool:
        return database == self.database or database.startswith(f"{self.database}{SCRATCH}")


class Session:
    def __init__(
        self,
        client: socket.socket,
        *,
        engine: ChdbEngine,
        watcher: Watcher,
        access: Access,
        on_welcome: Callable[[], None],
    ) -> None:
        self._client = client
        self._on_welcome = on_welcome
        self._engine = engine
        self._watcher = watcher
        self._access = access
        self._reader = ByteReader(receive=client.recv)
        self._sticky: list[str] = []
        self._database = access.database

    def run(self) -> None:
        try:
            self._client.settimeout(_HELLO_SECONDS)
            welcome = self._greet()
            self._client.settimeout(None)
            if welcome:
                self._on_welcome()
                while self._serve_packet():
                    self._reader.compact()
        # The last two errors mean that the client took no byte of an answer for too long, or sent none at first.
        except (EOFError, ConnectionError, BlockingIOError, TimeoutError):
            logger.debug("client.gone")
        except PacketError as error:
            logger.warning("client.protocol_error reason=%s", error)
            self._try_send(protocol.exception(_UNEXPECTED_PACKET, "DB::NetException", f"DB::NetException: {error}"))
        finally:
            self._client.close()

    def _greet(self) -> bool:
        if self._reader.varint() != ClientPacket.HELLO:
            raise PacketError("the first packet is not a hello")
        hello = protocol.read_hello(self._reader)
        if hello.revision < protocol.REVISION:
            raise PacketError(f"the client's revision {hello.revision} is older than {protocol.REVISION}")
        if not self._admits(hello.user, hello.password):
            message = "DB::Exception: Authentication failed: password is incorrect, or there is no such user"
            self._send(protocol.exception(_AUTHENTICATION_FAILED, "DB::Exception", message))
            return False
        self._database = hello.database or self._access.database
        if not self._access.allows(self._database):
            message = f"DB::Exception: Not enough privileges: this engine's only database is {self._access.database}"
            self._send(protocol.exception(_ACCESS_DENIED, "DB::Exception", message))
            return False
        self._send(protocol.hello(name=SERVER_NAME, version=self._engine.version, time_zone="UTC"))
        self._reader.raw_string()  # The client's quota key has no meaning here.
        return True

    def _admits(self, user: str, password: str) -> bool:
        given = (user.encode("utf-8", "surrogateescape"), password.encode("utf-8", "surrogateescape"))
        known = hmac.compare_digest(given[0], self._access.user.encode())
        return hmac.compare_digest(given[1], self._access.password.encode()) and known

    def _serve_packet(self) -> bool:
        match self._reader.varint():
            case ClientPacket.PING:
                self._send(protocol.pong())
            case ClientPacket.CANCEL:
                pass  # The packet belongs to a query that had already ended.
            case ClientPacket.QUERY:
                return self._serve_query(protocol.read_query(self._reader))
            case packet:
                raise PacketError(f"unexpected packet {packet}")
        return True

    def _serve_query(self, query: Query) -> bool:
        """Returns False after an error amid a client's data: the connection cannot resume then."""
        if query.compressed:
            raise PacketError("compression is not supported on a loopback connection")
        tables = self._receive_external_tables()
        target = statement.insert_target(query.text)
        try:
            self._engine.rights.check(query.text)
            with self._engine.connection() as connection:
                self._prepare(connection, query, tables)
                if target is not None:
                    self._insert(connection, target)
                else:
                    self._answer(connection, query, has_tables=bool(tables))
        except EngineError as error:
            self._send(protocol.exception(error.code, "DB::Exception", error.message))
        except UnsupportedTypeError as error:
            message = f"DB::Exception: the embedded engine cannot carry columns of type {error}"
            self._send(protocol.exception(_NOT_IMPLEMENTED, "DB::Exception", message))
        else:
            return True
        finally:
            if target is None and not statement.is_read(query.text):
                self._engine.empty_results.forget()
        # The rows of a refused INSERT may still be on their way, so the stream has no known position any more.
        return target is None

    def _receive_external_tables(self) -> list[tuple[str, Block]]:
        tables: list[tuple[str, Block]] = []
        room = _MAX_INSERT_BYTES
        while True:
            name, block = self._receive_block(room)
            if not block.columns:
                return tables
            room -= len(block.encoded)
            tables.append((name, block))

    def _receive_block(self, limit: int) -> tuple[str, Block]:
        name = self._receive_block_name()
        block = read_wire_block(self._reader, limit=limit)
        self._reader.compact()
        return name, block

    def _receive_rows(self, data: InsertData) -> int | None:
        self._receive_block_name()
        columns, rows = copy_wire_block(self._reader, data.write, limit=_MAX_INSERT_BYTES - data.size)
        self._reader.compact()
        return rows if columns else None

    def _receive_block_name(self) -> str:
        packet = self._reader.varint()
        if packet == ClientPacket.CANCEL:
            raise EngineError(QUERY_WAS_CANCELLED, "DB::Exception: the client cancelled while it sent its data")
        if packet != ClientPacket.DATA:
            raise PacketError(f"packet {packet} instead of data")
        return self._reader.string()

    def _prepare(self, connection: ChdbConnection, query: Query, tables: list[tuple[str, Block]]) -> None:
        connection.execute(f"USE {protocol.quote_identifier(self._database)}")
        for text in self._sticky:
            connection.execute(text)
        for name, block in tables:
            definition = _temporary_table(name, block)
            self._engine.rights.check(definition)
            connection.execute(definition)
            _fill(connection, name, block)
        if query.settings:
            connection.execute(statement.set_statement(query.settings))

    def _answer(self, connection: ChdbConnection, query: Query, *, has_tables: bool) -> None:
        parameters = {name: statement.parameter_text(value) for name, value in query.parameters.items()}
        if statement.is_read(query.text):
            statement.check_output(query.text)
        with self._running() as running:
            tagged = running.tag + query.text
            # chDB streams only SELECT: neither EXPLAIN nor SHOW CREATE TABLE.
            streamed = statement.is_select(query.text)
            chunks = connection.stream(tagged, parameters) if streamed else connection.run(tagged, parameters)
            try:
                columns_sent = self._send_result(chunks)
            except EngineError as error:
                if not (running.cancelled and error.code == QUERY_WAS_CANCELLED):
                    raise
                columns_sent = True  # The client cancelled the query and gets the rows that were read before.
        if not columns_sent and statement.is_select(query.text):
            describe = partial(connection.columns_of_select, query.text, parameters)
            self._send(protocol.data(header_block(describe() if has_tables else self._columns(query, describe))))
        if statement.is_sticky(query.text):
            self._sticky = [*(text for text in self._sticky if text != query.text), query.text][-_MAX_STICKY:]
        self._send(protocol.end_of_stream())

    def _columns(self, query: Query, describe: Callable[[], tuple[Column, ...]]) -> tuple[Column, ...]:
        session = (self._database, *self._sticky)
        return self._engine.empty_results.columns(query.text, session, query.settings, describe)

    def _send_result(self, chunks: Iterator[Chunk]) -> bool:
        started = time.monotonic_ns()
        rows = blocks = size = 0
        chunk = None
        for chunk in chunks:
            for block in blocks_of_result(chunk.native):
                header = b"" if blocks else protocol.data(header_block(block.columns))
                self._send(header + protocol.data(block.encoded))
                rows, blocks, size = rows + block.rows, blocks + 1, size + len(block.encoded)
        if chunk is not None:
            elapsed = time.monotonic_ns() - started
            info = protocol.profile_info(rows=rows, blocks=blocks, size=size)
            self._send(info + protocol.progress(rows=chunk.read_rows, size=chunk.read_bytes, elapsed_ns=elapsed))
        return blocks > 0

    def _insert(self, connection: ChdbConnection, target: InsertTarget) -> None:
        columns = _insert_columns(connection, target)
        self._send(protocol.table_columns(columns) + protocol.data(header_block(columns)))
        received = 0
        with insert_data() as data:
            while (rows := self._receive_rows(data)) is not None:
                received += rows
                self._send(protocol.profile_events())
            data.flush()
            if received:
                with self._running() as running:
                    connection.execute(running.tag + _insert_statement(target, columns, data.path))
            written = protocol.progress(rows=0, size=0, written_rows=received, written_bytes=data.size)
        self._send(protocol.profile_events() + written + protocol.end_of_stream())

    @contextmanager
    def _running(self) -> Iterator[RunningQuery]:
        query = RunningQuery(self._client, self._engine.new_tag())
        self._watcher.watch(query)
        try:
            yield query
        finally:
            self._watcher.forget(query)

    def _send(self, packets: bytes) -> None:
        self._client.sendall(packets)

    def _try_send(self, packets: bytes) -> None:
        try:
            self._client.sendall(packets)
        except OSError:
            logger.debug("client.gone")


def _temporary_table(name: str, block: Block) -> str:
    columns = ", ".join(f"{protocol.quote_identifier(column.name)} {column.type}" for column in block.columns)
    return f"CREATE TEMPORARY TABLE IF NOT EXISTS {protocol.quote_identifier(name)} ({columns}) ENGINE = Memory"


def _fill(connection: ChdbConnection, name: str, block: Block) -> None:
    if block.rows:
        table = protocol.quote_identifier(name)
        with insert_data() as data:
            data.write(block.encoded)
            data.flush()
            connection.execute(f"INSERT INTO {table} FROM INFILE '{data.path}' COMPRESSION 'none' FORMAT Native")


def _insert_columns(connection: ChdbConnection, target: InsertTarget) -> tuple[Column, ...]:
    columns = connection.columns_of_table(target.table)
    if not target.columns:
        return columns
    by_name = {column.name: column for column in columns}
    for name in target.columns:
        if name not in by_name:
            raise EngineError(_NO_SUCH_COLUMN, f"DB::Exception: No such column {name} in table {target.table}")
    return tuple(by_name[name] for name in target.columns)


def _insert_statement(target: InsertTarget, columns: tuple[Column, ...], path: str) -> str:
    names = ", ".join(protocol.quote_identifier(column.name) for column in columns)
    settings = f" SETTINGS {target.settings}" if target.settings else ""
    return f"INSERT INTO {target.table} ({names}) FROM INFILE '{path}' COMPRESSION 'none'{settings} FORMAT Native"
