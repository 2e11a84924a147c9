"""Many applications that fetch a prompt over HTTP at once, of a worker that has not read their project yet.

The queries are counted in PostgreSQL's own log of statements.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.gateway.conftest import LONG_TIMEOUTS, assert_log_is_clean
from tests.gateway.managed import make_prompt
from tests.gateway.service import Gateway, GatewayService
from tests.services import start_postgresql
from tests.stores import migrate, shared_secrets
from tests.waiting import TIMEOUT_SECONDS, wait_until

FETCHES = 1000
# Django quotes every name, so that only the statements that read tables match.
_READ = re.compile(r'(?:statement|execute [^:]*): (SELECT .* FROM ".*)')
# The service looks at its migrations from time to time, whoever fetches.
_BY_THE_CLOCK = 'FROM "django_migrations"'
_VALUE = re.compile(r"'[^']*'|\b\d+\b")

Answer = tuple[int, bytes]


class Database:
    """A PostgreSQL of the test's own that writes every statement into its log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service, self.url = start_postgresql(folder / "pg")
        self._log = folder / "pg" / "postgresql.log"
        self._read_to = 0

    def log_statements(self) -> None:
        with self.connect() as connection:
            connection.execute("ALTER SYSTEM SET log_statement = 'all'")
            connection.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self._setting() == "all", what="PostgreSQL to read its configuration again")

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url, autocommit=True)

    def reads(self) -> Counter[str]:
        """Returns the reads of tables since the last call, without their values. PostgreSQL logs a statement before it
        runs it, so those of an answer that is here are all in the log."""
        with self._log.open(encoding="utf-8") as log:
            log.seek(self._read_to)
            found = _READ.findall(log.read())
            self._read_to = log.tell()
        return Counter(_VALUE.sub("?", statement) for statement in found if _BY_THE_CLOCK not in statement)

    def _setting(self) -> str:
        """Returns the setting of a new session."""
        with self.connect() as connection:
            [value] = connection.execute("SHOW log_statement").fetchone() or [""]
        return str(value)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    folder = Path(tempfile.mkdtemp(prefix="cold-", dir="/tmp"))
    folder.chmod(0o755)
    running = Database(folder)
    yield running
    running.service.stop(signal.SIGINT)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def on_postgresql(database: Database) -> Iterator[GatewayService]:
    """A service of one worker."""
    environment = {"DATABASE_URL": database.url, **shared_secrets()}
    migrate(database.folder, environment, "migrate")
    with GatewayService(workers=1, settings={**LONG_TIMEOUTS, **environment}) as running:
        database.log_statements()
        yield running
        assert_log_is_clean(running)


def cold_project(service: GatewayService) -> Gateway:
    """Makes a project that the worker has not read, with a prompt of three versions, the first of which is active."""
    project = service.new_project()
    make_prompt(project, "One.", "Two.", "Three.")
    return project


async def answer_of(reader: asyncio.StreamReader) -> Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert length is not None, head
    return int(head.split()[1]), await reader.readexactly(int(length[1]))


class Connection:
    """A connection of its own, as that of one application."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, path: str, key: str) -> None:
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


async def fetch_at_once(project: Gateway, path: str, count: int, database: Database) -> Counter[Answer]:
    """Returns the answers to so many fetches, all of which the worker had begun before PostgreSQL let it read."""
    clients = [await Connection.open(project.port) for _ in range(count)]
    with database.connect() as locking:
        locking.execute("BEGIN")
        locking.execute("LOCK TABLE core_apikey, prompts_promptversion IN ACCESS EXCLUSIVE MODE")
        for client in clients:
            await client.send(path, project.key)
        answers = [asyncio.ensure_future(answer_of(client.reader)) for client in clients]
        # The worker begins requests in the order in which they came: when it answers this one, it has begun the others.
        last = await Connection.open(project.port)
        await last.send("/healthz", project.key)
        assert (await answer_of(last.reader))[0] == 200
        assert not any(answer.done() for answer in answers)
        locking.execute("COMMIT")
    async with asyncio.timeout(TIMEOUT_SECONDS):
        found = Counter(await asyncio.gather(*answers))
    for client in [*clients, last]:
        client.close()
    return found


@pytest.mark.parametrize("query", ["", "?version=2"])
async def test_cold_fetches__a_thousand_at_once__ask_the_database_what_one_asks(
    on_postgresql: GatewayService, database: Database, query: str
) -> None:
    path = f"/api/llm/prompts/support{query}"
    alone, crowded = cold_project(on_postgresql), cold_project(on_postgresql)
    database.reads()

    await fetch_at_once(alone, path, 1, database)
    reads_of_one = database.reads()
    answers = await fetch_at_once(crowded, path, FETCHES, database)

    [(status, body)] = answers
    assert status == 200, body
    assert answers.total() == FETCHES
    assert database.reads() == reads_of_one
    assert any('FROM "prompts_promptversion"' in read for read in reads_of_one), reads_of_one
    # What the worker has read is not read again.
    assert on_postgresql.client.get(f"{crowded.service.base_url()}{path}", headers=crowded.headers).content == body
    assert database.reads() == Counter()
