"""Migrated tables without rows, for the stores and services of tests that are not about a first start.

`python -m tests.run` makes them once, as `python -m tests.migrated FOLDER` does, and all its units copy them. A single
pytest migrates SQLite with the first service that asks for it, and leaves the tables of ClickHouse and PostgreSQL to
each server: to make a folder of them takes longer than it saves a few servers.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from tests.services import Service, postgresql_url, start_clickhouse, start_postgresql
from tests.stores import shared_secrets

ROOT = Path(__file__).resolve().parent.parent
# The variable that names the folder of tables that were made before.
SHARED = "SUITE_TABLES"
_DATABASE, _TABLES, _CLUSTER = "db.sqlite3", "clickhouse/data", "postgresql"
# The migrated database of the PostgreSQL cluster.
TEMPLATE = "migrated"

# The content of the database, once the first service of the run has asked for it.
_made: list[bytes] = []


def place_database(var_dir: Path) -> None:
    """Makes the folder VAR_DIR if it is missing, and puts the database into it.

    A run of the suite migrates once: the migrations are a fifth of the CPU of a first start.
    """
    if not _made:
        shared = os.environ.get(SHARED)
        _made.append((Path(shared) / _DATABASE).read_bytes() if shared else _migrated())
    var_dir.mkdir(mode=0o700, exist_ok=True)
    database = var_dir / _DATABASE
    database.touch(mode=0o600, exist_ok=False)
    database.write_bytes(_made[0])


def place_tables(data_dir: Path) -> None:
    if shared := os.environ.get(SHARED):
        shutil.copytree(Path(shared) / _TABLES, data_dir, symlinks=True)


def start_cluster(folder: Path) -> tuple[Service, str]:
    shared = os.environ.get(SHARED)
    return start_postgresql(folder, copy_of=Path(shared) / _CLUSTER if shared else None)


def prepare(folder: Path) -> None:
    folder.mkdir()
    with ThreadPoolExecutor() as pool:
        # No unit starts before the tables are there, and each store has migrations of its own.
        made = [pool.submit(make, folder) for make in (_make_cluster, _make_database, _make_tables)]
    for one in made:
        one.result()


def _make_database(folder: Path) -> None:
    (folder / _DATABASE).write_bytes(_migrated())


def _make_tables(folder: Path) -> None:
    url_file = folder / "clickhouse.url"
    engine = start_clickhouse(folder / "clickhouse", ROOT / "manage.py", url_file)
    try:
        _manage("migrate_analytics", folder, CLICKHOUSE_URL=url_file.read_text(encoding="utf-8").strip())
    finally:
        engine.stop()


def _make_cluster(folder: Path) -> None:
    # PostgreSQL runs as another user than root, who has to reach the folder.
    for above in (folder, folder.parent):
        above.chmod(above.stat().st_mode | 0o111)
    cluster = folder / _CLUSTER
    server, url = start_postgresql(cluster)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {TEMPLATE}")
        _manage("migrate", folder, DATABASE_URL=postgresql_url(cluster, TEMPLATE), **shared_secrets())
    finally:
        server.stop(signal.SIGINT)


def _migrated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="migrated-") as folder:
        _manage("migrate", Path(folder))
        assert [path.name for path in Path(folder).glob(f"{_DATABASE}*")] == [_DATABASE], (
            "there is more of it than the one file"
        )
        return (Path(folder) / _DATABASE).read_bytes()


def _manage(command: str, var_dir: Path, **environment: str) -> None:
    environment |= {"PATH": os.environ["PATH"], "HOME": str(var_dir), "VAR_DIR": str(var_dir)}
    words = [sys.executable, "manage.py", command, "--verbosity", "0"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
