from __future__ import annotations

import os
import re
import socket
import time
import uuid
from collections import Counter
from pathlib import Path

import psycopg
import redis

from benchmarks.waiting import wait_until

_MAX_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.002
_COMMAND = re.compile(rb'^\+\d+\.\d+ \[\d+ (\S+)\] "([^"]*)"(?: "([^"]*)")?')


class RedisCommands:
    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url)
        self._monitor = socket.socket(socket.AF_UNIX)
        self._monitor.settimeout(_MAX_WAIT_SECONDS)
        self._monitor.connect(url.removeprefix("unix://"))
        self._monitor.sendall(b"MONITOR\r\n")
        self._lines = self._monitor.makefile("rb")
        self._sent = self._run = 0
        self.names: Counter[str] = Counter()

    def close(self) -> None:
        self._lines.close()
        self._monitor.close()
        self._client.close()

    def read(self) -> dict[str, float]:
        marker = uuid.uuid4().hex.encode()
        self._client.echo(marker)
        for line in self._lines:
            command = _COMMAND.match(line)
            if command is None:
                continue
            if command[3] == marker:
                break
            by_script = command[1] == b"lua"
            self._sent += not by_script
            self._run += by_script
            if not by_script:
                self.names[command[2].decode().upper()] += 1
        return {"redis_commands": float(self._sent), "redis_commands_of_scripts": float(self._run)}


class Statements:
    def __init__(self, url: str, log: Path) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._log = log.open("rb")
        self._count = 0
        self.last: list[str] = []
        self._connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        self._connection.execute("SELECT pg_reload_conf()")
        # The server obeys a little later, and each of its processes before its next statement.
        wait_until(self._logs, "PostgreSQL does not log its statements", seconds=_MAX_WAIT_SECONDS, pause=_POLL_SECONDS)
        self._log.seek(0, os.SEEK_END)

    def _logs(self) -> bool:
        return self._connection.execute("SHOW log_statement").fetchone() == ("all",)

    def close(self) -> None:
        self._connection.close()
        self._log.close()

    def read(self) -> dict[str, float]:
        marker = uuid.uuid4().hex
        self._connection.execute(f"SELECT '{marker}'")
        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        while time.monotonic() < deadline:
            line = self._log.readline().decode(errors="replace")
            if marker in line:
                return {"sql_statements": float(self._count)}
            if not line:
                time.sleep(_POLL_SECONDS)
            elif re.search(r"LOG:  (statement|execute [^:]*): ", line):
                self._count += 1
                self.last = [*self.last[-2:], line.partition(": ")[2].strip()[:100]]
        raise TimeoutError("PostgreSQL's log does not show the benchmark's own statement")


def inserted() -> dict[str, float]:
    """Returns the inserts so far into all ClickHouse tables, views' included, and the rows of tables that keep each
    row. A table numbers the blocks that inserts bring, and merges keep the numbers."""
    from analytics.clickhouse import client

    found = client.execute(
        "SELECT parts.table, max(max_block_number), sumIf(rows, tables.engine = 'MergeTree') FROM system.parts AS parts"
        " JOIN system.tables AS tables ON tables.name = parts.table AND tables.database = parts.database"
        " WHERE active AND parts.database = currentDatabase() GROUP BY parts.table"
    )
    return {
        "inserts": float(sum(blocks for _, blocks, _ in found)),
        "rows": float(sum(rows for _, _, rows in found)),
    }
