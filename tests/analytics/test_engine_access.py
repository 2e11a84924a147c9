"""The access to the embedded engine: which processes may connect, and that they reach only its own database."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clickhouse_driver import Client
from clickhouse_driver.errors import ServerException

from analytics.clickhouse.engine.errors import EngineError
from analytics.clickhouse.engine.statement_rights import HARMLESS_TABLE_FUNCTIONS, TABLE_ENGINES, StatementRights
from tests.analytics.engine_process import EngineProcess, running_engine
from tests.tables.cases import tabled

DENIED, WRONG_PASSWORD = 497, 516
NOBODY = 65534
SECRET = "the encryption key"

# Each line is one attempt of a process of another user.
INTRUDER = """
import os, sys
from clickhouse_driver import Client
directory, url_file, port, pid, uid = sys.argv[1:]
def attempt(what, call):
    try:
        call()
    except Exception as error:
        print("refused", what, type(error).__name__, getattr(error, "code", ""))
    else:
        print("WORKED", what)
def ask(password):
    Client("127.0.0.1", port=int(port), user="default", password=password).execute("SELECT 1")
# It imports what it needs while it may: a virtual environment below /root is closed to other users.
attempt("as the owner, no password", lambda: ask(""))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
attempt("address", lambda: open(url_file).read())
attempt("write address", lambda: open(url_file, "w"))
attempt("list", lambda: os.listdir(directory))
attempt("create", lambda: open(os.path.join(directory, "new"), "w"))
attempt("environment", lambda: open(f"/proc/{pid}/environ").read())
attempt("memory", lambda: open(f"/proc/{pid}/mem", "rb"))
attempt("signal", lambda: os.kill(int(pid), 0))
attempt("no password", lambda: ask(""))
attempt("guessed password", lambda: ask("default"))
print("command line", open(f"/proc/{pid}/cmdline").read().replace(chr(0), " "))
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineProcess]:
    """An engine in a folder that anybody may enter, so that only the engine's own files can be closed."""
    with tempfile.TemporaryDirectory(prefix="gw-engine-") as folder:
        Path(folder).chmod(0o755)
        with running_engine(Path(folder) / "data") as started:
            yield started


@pytest.fixture
def client(engine: EngineProcess) -> Iterator[Client]:
    with engine.client() as connected:
        connected.execute("CREATE TABLE IF NOT EXISTS kept (line String) ENGINE = MergeTree ORDER BY line")
        yield connected


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    return file


def code_of(client: Client, sql: str, *args: Any, **options: Any) -> int:
    with pytest.raises(ServerException) as caught:
        client.execute(sql, *args, **options)
    assert SECRET not in str(caught.value)
    return int(caught.value.code)


@pytest.mark.parametrize(
    "given", [{"password": ""}, {"password": "wrong"}, {"password": "ü\0"}, {"user": "other"}, {"user": ""}]
)
def test_hello__without_the_password_or_the_name__is_refused(engine: EngineProcess, given: dict[str, str]) -> None:
    with engine.client(**given) as stranger:
        assert code_of(stranger, "SELECT 1") == WRONG_PASSWORD


@pytest.mark.parametrize("database", ["default", "system", "information_schema", "absent"])
def test_hello__another_database__is_refused(engine: EngineProcess, database: str) -> None:
    with engine.client(database=database) as stranger:
        assert code_of(stranger, "SELECT 1") == DENIED


def test_start__without_a_given_password__makes_another_each_time(tmp_path: Path) -> None:
    urls = []
    for _ in range(2):
        with running_engine(tmp_path / "data") as engine:
            urls.append(engine.new_client().connection.password)
            assert engine.url_file.stat().st_mode & 0o777 == 0o600
            assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
            assert urls[-1] not in engine.log()

    assert len(set(urls)) == 2
    assert min(len(url) for url in urls) >= 40


@tabled
def test_statement__reaching_beyond_its_tables__is_refused(client: Client, secret: Path, sql: str) -> None:
    before = sorted(secret.parent.iterdir())

    assert code_of(client, sql.replace("{secret}", str(secret))) == DENIED

    assert sorted(secret.parent.iterdir()) == before


@pytest.mark.parametrize(
    "name", ["dialect", "format_schema", "format_template_row", "format_template_resultset", "url_base"]
)
def test_setting__naming_files_or_languages__is_refused(client: Client, secret: Path, name: str) -> None:
    for settings, clause in (({name: str(secret)}, ""), ({}, f" SETTINGS {name} = '{secret}'")):
        # The setting is unknown, or its value is fixed.
        assert code_of(client, f"SELECT 1{clause}", settings=settings) in (36, 452)


def test_external_table__of_a_type_with_an_engine_in_it__is_refused(client: Client, secret: Path) -> None:
    injected = f"String DEFAULT file('{secret}')"
    table = {"name": "ext", "structure": [("line", "String"), ("b", "UInt8")], "data": [{"line": "a", "b": 1}]}
    assert client.execute("SELECT line FROM ext", external_tables=[table]) == [("a",)]
    with pytest.raises(EngineError):
        StatementRights(()).check(f"CREATE TEMPORARY TABLE ext (line {injected}) ENGINE = Memory")


def test_table_functions_and_engines__of_this_chdb__are_refused_but_those_listed(client: Client) -> None:
    """A new version of chDB may bring more functions; those that nobody has looked at are refused."""
    functions = [name for (name,) in client.execute("SELECT name FROM system.table_functions")]
    engines = [name for (name,) in client.execute("SELECT name FROM system.table_engines")]
    assert len(functions) > 50
    for name in functions:
        if name.lower() not in HARMLESS_TABLE_FUNCTIONS:
            assert code_of(client, f"SELECT * FROM {name}('a', 'b', 'c')") == DENIED, name  # noqa: S608 - the engine's own
    for name in engines:
        if name not in TABLE_ENGINES:
            assert code_of(client, f"CREATE TABLE reach (line String) ENGINE = {name}('a', 'b')") == DENIED, name


def test_statement__of_the_products_kind__is_served(client: Client) -> None:
    for sql in (
        "CREATE TABLE IF NOT EXISTS a (n UInt64, line String) ENGINE = MergeTree ORDER BY n",
        "CREATE TABLE IF NOT EXISTS source (n UInt64, line String) ENGINE = Null",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS a_mv TO a AS SELECT n, line FROM source",
        "INSERT INTO source SELECT number, 'x' FROM numbers(3)",
        "ALTER TABLE a ADD COLUMN b UInt8, MODIFY SETTING min_age_to_force_merge_seconds = 60",
        "ALTER TABLE a ADD INDEX i line TYPE bloom_filter GRANULARITY 1",
        "ALTER TABLE a MATERIALIZE INDEX i",
        "CREATE TABLE a2 AS a",
        "ALTER TABLE a2 MODIFY COMMENT 'a comment'",
        "EXCHANGE TABLES a AND a2",
        "RENAME TABLE a2 TO a3",
        "DELETE FROM a3 WHERE n = 1",
        "ALTER TABLE a3 DELETE WHERE n = 2",
        "OPTIMIZE TABLE a3 FINAL",
        "DROP TABLE a_mv SYNC",
        "DROP TABLE a3 SYNC",
        "TRUNCATE TABLE a",
    ):
        client.execute(sql)


def test_another_user_of_the_host__neither_reads_nor_writes_nor_queries(engine: EngineProcess) -> None:
    """The process runs as the user nobody where the suite may change its user; elsewhere as the suite's user, to whom
    only the engine is closed."""
    about = (engine.directory, engine.url_file, engine.port, engine.process.pid, NOBODY)
    output = subprocess.run(
        [sys.executable, "-c", INTRUDER, *map(str, about)], cwd="/", capture_output=True, text=True, check=True
    ).stdout

    lines = output.splitlines()
    assert "refused no password ServerException 516" in lines, output
    assert "refused guessed password ServerException 516" in lines, output
    password = engine.new_client().connection.password
    assert password not in output.partition("command line")[2]
    if os.geteuid() == 0:
        assert [line for line in lines if line.startswith("WORKED")] == [], output
