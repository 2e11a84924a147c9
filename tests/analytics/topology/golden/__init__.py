"""What each mode of the analytics store makes of the schema's definitions, for the reader and for a test."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from analytics.clickhouse import migrator, text_index
from analytics.clickhouse.topology.mode import parse
from analytics.clickhouse.topology.routing import Step, steps, tables_read
from tests.analytics import upgrades

MODES = ("replicated", "cloud", "cluster:prod")
DATABASE = "llm"
FOLDER = Path(__file__).parent


def path(mode: str) -> Path:
    return FOLDER / f"{mode.partition(':')[0]}.diff"


def written() -> Iterator[str]:
    """Returns every statement of the schema and its migrations, as the files have it, and those of the migrations of
    tests, which are one of each kind. Columns of the request log are all like the one of these."""
    yield f"CREATE DATABASE IF NOT EXISTS {DATABASE}"
    yield migrator.LEDGER.strip()
    later = (migrator.Migration(0, name, text) for name, text in upgrades.texts().items())
    for migration in (*migrator.written_migrations(), *later):
        yield from migration.statements(**text_index.clauses())
    yield "CREATE TABLE migration_lease_1 (none UInt8) ENGINE = Null COMMENT 'here beat 1'"
    yield "ALTER TABLE migration_lease_1 MODIFY COMMENT 'here beat 2'"
    yield "DROP TABLE IF EXISTS migration_lease_1 SYNC"
    yield "EXCHANGE TABLES requests_hourly_copy AND requests_hourly"
    yield "DELETE FROM requests WHERE project_id = {project:UUID}"
    yield "OPTIMIZE TABLE vocabulary PARTITION {week:Date} FINAL"


def run(sql: str, mode: str) -> list[Step]:
    return steps(sql, parse(mode), DATABASE, fresh=tables_read(sql))


def describe(mode: str) -> str:
    """Returns what differs from the files: lines with + are sent in place of those with -."""
    pages = []
    for sql in written():
        sent = [line for step in run(sql, mode) for line in _lines(step)]
        lines = difflib.unified_diff(sql.splitlines(), sent, n=0, lineterm="")
        changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        if changed:
            pages.append("\n".join([f"@@ {' '.join(sql.split())[:90].strip()} @@", *changed]))
    return "\n".join(pages) + "\n"


def _lines(step: Step) -> Iterator[str]:
    yield from (f"/* first */ {statement};" for statement in step.before if not statement.startswith(_ALWAYS))
    first, *others = step.sql.splitlines()
    yield f"/* in {DATABASE}{step.suffix} */ {first}" if step.suffix else first
    yield from others


# Every definition of a Replicated database begins with this one.
_ALWAYS = "SYSTEM SYNC DATABASE REPLICA"
