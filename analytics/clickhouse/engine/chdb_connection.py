"""The only module that uses chDB: it opens the engine on a directory, and one connection per query and thread.

Query parameters and settings live on chDB's connection: if two threads shared one, a query could run with the other's
parameters. So each query opens its own, for its thread only. Opening takes 0.1 ms while the keeper holds the engine.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from analytics.clickhouse.engine.errors import EngineError
from analytics.clickhouse.engine.interrupted_inserts import forget_interrupted_inserts
from analytics.clickhouse.engine.native_blocks import Column
from analytics.clickhouse.engine.protocol import quote_identifier
from analytics.clickhouse.engine.rights import write_configuration
from analytics.clickhouse.engine.statement_rights import StatementRights

logger = logging.getLogger("analytics.engine")

TAG_PREFIX = "pg"
EXIT_BROKEN = 70
_ABORTED = 236
DEFAULT_MEMORY_LIMIT = 1_500_000_000
_MEBIBYTE = 1 << 20
# chDB's defaults are those of a server that owns its machine: caches of 5 GB each, a thread per core and query.
_SERVER_SETTINGS: dict[str, int | str] = {
    "mark_cache_size": 64 * _MEBIBYTE,
    "uncompressed_cache_size": 0,
    "index_mark_cache_size": 16 * _MEBIBYTE,
    "index_uncompressed_cache_size": 0,
    "text_index_header_cache_size": 64 * _MEBIBYTE,
    "text_index_tokens_cache_size": 64 * _MEBIBYTE,
    "text_index_postings_cache_size": 16 * _MEBIBYTE,
    "primary_index_cache_size": 64 * _MEBIBYTE,
    "query_condition_cache_size": 16 * _MEBIBYTE,
    "mmap_cache_size": 128,
    "compiled_expression_cache_size": 16 * _MEBIBYTE,
    "max_threads": 2,
    "asynchronous_metrics_update_period_s": 60,  # Nobody reads them.
    # How often the memory that is counted is corrected by what the process has. The default, 50, was most of what an
    # idle engine did; with 1000, six queries that need twice the limit together went beyond it by a third more.
    "memory_worker_period_ms": 200,
}


# Remembers the columns of results without rows.
#
# chDB returns nothing at all for no rows, while a client wants the columns. To describe a query means to analyse it
# again, which of a query of milliseconds is most of its time; the same few queries are asked with other parameters.

_MAX_QUERIES = 512
_MAX_CHARACTERS = 20_000
# A parameter that names a column or a table decides on the columns, and one that is a column by itself on its name.
_NAMES = re.compile(r"\{\s*\w+\s*:\s*Identifier\s*\}")
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.]*\Z")


class EmptyResults:
    """Caches the columns of queries by text and settings, until a statement may have changed a table.

    Other parameter values may change a type's scale or time zone, which does not matter in a result without rows.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._columns: OrderedDict[tuple[str, ...], tuple[Column, ...]] = OrderedDict()
        self._changes = 0

    def columns(
        self,
        text: str,
        session: tuple[str, ...],
        settings: Mapping[str, str],
        describe: Callable[[], tuple[Column, ...]],
    ) -> tuple[Column, ...]:
        key = (text, *session, *(part for setting in sorted(settings.items()) for part in setting))
        if sum(map(len, key)) > _MAX_CHARACTERS or _NAMES.search(text):
            return describe()
        with self._lock:
            if key in self._columns:
                self._columns.move_to_end(key)
                return self._columns[key]
            changes = self._changes
        columns = describe()
        is_known = all(_PLAIN_NAME.match(column.name) for column in columns)
        with self._lock:
            # A change of a table meanwhile may have come after the columns.
            if is_known and changes == self._changes:
                self._columns[key] = columns
                if len(self._columns) > _MAX_QUERIES:
                    self._columns.popitem(last=False)
        return columns

    def forget(self) -> None:
        """Call this after every statement that may have changed a table."""
        with self._lock:
            self._columns.clear()
            self._changes += 1


@dataclass(frozen=True)
class Chunk:
    native: bytes
    read_rows: int
    read_bytes: int


class ChdbConnection:
    """The connection of one query. Only the thread that opened it may use it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._owner = threading.get_ident()
        self._unfinished: Any = None

    def execute(self, sql: str, parameters: Mapping[str, str] | None = None) -> Chunk:
        """Runs a statement to its end.

        Raises EngineError, also for failures of views and constraints on writes.
        """
        self._check_thread()
        try:
            result = self._connection.query(sql, "Native", params=dict(parameters or {}))
        except Exception as error:  # chDB raises bare RuntimeErrors beside its own class.
            raise _failure(error) from error
        return _chunk(result)

    def run(self, sql: str, parameters: Mapping[str, str] | None = None) -> Generator[Chunk, None, None]:
        yield self.execute(sql, parameters)

    def stream(self, sql: str, parameters: Mapping[str, str] | None = None) -> Generator[Chunk, None, None]:
        """Closing the connection stops a result that is not read to its end."""
        self._check_thread()
        try:
            result = self._unfinished = self._connection.send_query(sql, "Native", params=dict(parameters or {}))
            while (piece := result.fetch()) is not None:
                yield _chunk(piece)
        except Exception as error:  # chDB raises bare RuntimeErrors beside its own class.
            raise _failure(error) from error
        self._unfinished = None

    def columns_of_select(self, sql: str, parameters: Mapping[str, str] | None = None) -> tuple[Column, ...]:
        """Needed because chDB returns no header for a result without rows."""
        return self._describe(f"({sql.rstrip().rstrip(';')}\n)", parameters)

    def columns_of_table(self, table: str) -> tuple[Column, ...]:
        return self._describe(f"TABLE {table}", None)

    def _describe(self, subject: str, parameters: Mapping[str, str] | None) -> tuple[Column, ...]:
        self._check_thread()
        try:
            result = self._connection.query(f"DESCRIBE {subject}", "JSONCompact", params=dict(parameters or {}))
        except Exception as error:  # chDB raises bare RuntimeErrors beside its own class.
            raise _failure(error) from error
        # The rows hold the name, the type and the kind of default of each column.
        rows = json.loads(result.bytes())["data"]
        return tuple(Column(row[0], row[1]) for row in rows if row[2] not in ("MATERIALIZED", "ALIAS"))

    def close(self) -> None:
        # An unfinished result that outlives its connection takes the whole engine down ("fatal error", code 236).
        if self._unfinished is not None:
            self._unfinished.cancel()
        self._connection.close()

    def _check_thread(self) -> None:
        if threading.get_ident() != self._owner:
            raise RuntimeError("a chDB connection was used by another thread than its own")


class ChdbEngine:
    """The engine on one directory. A process has only one: chDB refuses a second path."""

    def __init__(self, directory: Path, *, backups: Path, memory_limit: int = DEFAULT_MEMORY_LIMIT) -> None:
        self._directory = directory
        self._backups = backups
        self._settings = {"max_server_memory_usage": memory_limit, **_SERVER_SETTINGS}
        self._path = ""
        self.rights = StatementRights(())
        self.empty_results = EmptyResults()
        self._tags = itertools.count(1)
        self._keeper: Any = None
        self.version = (0, 0, 0)

    def open(self, database: str) -> None:
        forget_interrupted_inserts(self._directory)
        config = write_configuration(self._directory, database, self._backups)
        settings = {**self._settings, "config-file": quote(str(config))}
        self._path = f"{quote(str(self._directory))}?" + "&".join(f"{name}={value}" for name, value in settings.items())
        # The database has an explicit engine, because chDB's `default` is an overlay that loses what MergeTree tables
        # need.
        self._keeper = self._connect()
        self._keeper.query(f"CREATE DATABASE IF NOT EXISTS {quote_identifier(database)} ENGINE = Atomic")
        [(version,)] = self._ask_keeper("SELECT version()")
        self.rights = StatementRights(name for (name,) in self._ask_keeper("SELECT name FROM system.table_functions"))
        major, minor, patch = (int(part) for part in version.split(".")[:3])
        self.version = (major, minor, patch)

    def _ask_keeper(self, sql: str) -> list[list[str]]:
        rows: list[list[str]] = json.loads(self._keeper.query(sql, "JSONCompact").bytes())["data"]
        return rows

    def _connect(self) -> Any:
        # Loading chDB starts a dozen threads, so it waits until this process really is the engine.
        from chdb.state.sqlitelike import connect

        return connect(self._path)

    @contextmanager
    def connection(self) -> Iterator[ChdbConnection]:
        try:
            opened = self._connect()
        except Exception as error:  # chDB raises bare RuntimeErrors beside its own class.
            raise _failure(error) from error
        with closing(ChdbConnection(opened)) as connection:
            yield connection

    def new_tag(self) -> str:
        return f"/*{TAG_PREFIX}{next(self._tags)}*/"

    def kill(self, tag: str) -> None:
        with self.connection() as connection:
            connection.execute("KILL QUERY WHERE startsWith(query, {tag:String})", {"tag": tag})

    def close(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None


def _failure(error: Exception) -> EngineError:
    failure = EngineError.of_chdb(error)
    if failure.code == _ABORTED and "fatal error" in failure.message:
        # A broken chDB refuses every query from here on and cannot be closed; a new process opens the directory again.
        logger.critical("engine.broken code=%s", failure.code)
        os._exit(EXIT_BROKEN)
    return failure


def _chunk(result: Any) -> Chunk:
    return Chunk(result.bytes(), result.storage_rows_read(), result.storage_bytes_read())
