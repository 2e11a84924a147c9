from __future__ import annotations

import re
from dataclasses import dataclass

from analytics.clickhouse import client
from analytics.clickhouse.migrator import MIGRATIONS, SCHEMA

_HEAD = """# Tables of the analytics store

`manage.py describe_analytics --write` wrote this page from a migrated store; a test fails when it is out of date. The
tables are made by `analytics/clickhouse/schema/`; `analytics/clickhouse/migrations/README.md` says how to change them.
This is the store of one server; [several servers](clickhouse.md) have replicated tables of the same columns.
"""
_TABLES = """
SELECT name, database, formatQuery(create_table_query) AS definition FROM system.tables
WHERE database = currentDatabase() AND NOT startsWith(name, 'migration_lease_') AND name != 'schema_migrations'
ORDER BY name
"""
_VIEW_TARGET = re.compile(r"CREATE MATERIALIZED VIEW \w+ TO (\w+)\n\(.*?\n\)\n", re.DOTALL)
_FIRST_COMMENT = re.compile(r"(?:-- .*\n)+")


@dataclass(frozen=True)
class _Table:
    name: str
    database: str
    definition: str


def describe() -> str:
    purposes, definitions = _purposes(), read_definitions()
    views: dict[str, list[str]] = {}
    for view in definitions:
        if target := _VIEW_TARGET.match(definitions[view]):
            without_columns = _VIEW_TARGET.sub(rf"CREATE MATERIALIZED VIEW {view} TO \1\n", definitions[view])
            views.setdefault(target[1], []).append(without_columns)
    tables = [name for name, definition in definitions.items() if not _VIEW_TARGET.match(definition)]
    return _HEAD + "".join(
        _section(purposes.get(name, ""), name, [definitions[name], *views.get(name, [])]) for name in tables
    )


def _section(purpose: str, table: str, definitions: list[str]) -> str:
    blocks = "".join(f"\n```sql\n{text}\n```\n" for text in definitions)
    return f"\n## {table}\n\n{purpose}\n{blocks}"


def read_definitions() -> dict[str, str]:
    return {
        table.name: re.sub(rf"\b(TABLE|VIEW|TO|FROM) {re.escape(table.database)}\.", r"\1 ", table.definition)
        for table in client.query(_TABLES, {}, row=_Table, name="schema.tables")
    }


def _purposes() -> dict[str, str]:
    purposes = {}
    for path in (*SCHEMA.glob("*.sql"), *sorted(MIGRATIONS.glob("*.sql"))):
        text = path.read_text(encoding="utf-8")
        comment = _FIRST_COMMENT.match(text)
        for name in re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", text):
            purposes[name] = re.sub(r"^-- ", "", comment[0], flags=re.MULTILINE).strip() if comment else ""
    return purposes
