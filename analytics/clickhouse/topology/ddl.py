"""Turns a definition written for one server into those of the mode.

A MergeTree table becomes a replicated one, and so does a table in memory: no table is on one server alone. In a cluster
each definition is sent ON CLUSTER, and each table has a twin in the database of all shards, a Distributed table of the
same name, which is recreated whenever its table changes.
"""

from __future__ import annotations

import re

from analytics.clickhouse.topology.mode import ALL_SHARDS, Kind, Mode

# A batch may be sent again for as long as its shipper cannot reach the store. Keeper keeps the tokens meanwhile.
_WINDOW_SECONDS = 30 * 24 * 3600
# The path has the table's UUID, which is the same on all servers, because names change hands when tables are exchanged.
_PATH = "'/clickhouse/tables/{uuid}/{shard}', '{replica}'"

_MARK = r"\s*(?:/\*.*?\*/\s*)*"
_NAME = r"`?(?P<name>[\w{}]+(?:\.\w+)?)`?"
# What precedes the name of the table or view that a statement defines or changes.
_VERB = (
    r"CREATE (?:OR REPLACE )?TABLE(?: IF NOT EXISTS)?|CREATE (?:MATERIALIZED )?VIEW(?: IF NOT EXISTS)?"
    r"|CREATE DATABASE(?: IF NOT EXISTS)?|DROP DATABASE(?: IF EXISTS)?|DROP (?:TABLE|VIEW)(?: IF EXISTS)?"
    r"|ALTER TABLE|OPTIMIZE TABLE|TRUNCATE TABLE(?: IF EXISTS)?|DELETE FROM"
)
_OF_ONE = re.compile(rf"(?P<head>{_MARK}(?P<verb>{_VERB})) {_NAME}", re.DOTALL)
_OF_TWO = re.compile(
    rf"{_MARK}(?P<verb>RENAME TABLE(?: IF EXISTS)?|EXCHANGE TABLES) (?P<one>\w+) (?:TO|AND) (?P<two>\w+)"
)
_ENGINE = re.compile(r"\bENGINE = (?P<family>\w*MergeTree)\b(?:\((?P<arguments>[^()]*)\))?")
_IN_MEMORY = re.compile(r"\bENGINE = Memory\b")
_WINDOW = re.compile(r"\bnon_replicated_deduplication_window = (\d+)")
_COLUMNS = re.compile(r"\b(?:ADD|DROP|MODIFY|RENAME) COLUMN\b")
# Tables in which a migrator says that it is at work: nobody reads or inserts rows there.
_LEASE = "migration_lease_"
# These tables belong to no project; their rows are in the first shard.
_OF_NO_PROJECT = ("schema_migrations", "traffic_texts_", "figures_windows")


def is_definition(sql: str) -> bool:
    """DELETE and OPTIMIZE count too: they change what all servers hold."""
    return bool(_OF_ONE.match(sql) or _OF_TWO.match(sql))


def definitions(sql: str, mode: Mode, database: str) -> list[str]:
    """Returns the definitions to run in place of `sql`, in order. They are idempotent if `sql` is."""
    if mode.is_single:
        return [sql]
    replicated = _replicate(sql, with_path=mode.kind is Kind.CLUSTER)
    if mode.kind is not Kind.CLUSTER:
        return [_make_replicated_database(replicated) if mode.kind is Kind.REPLICATED else replicated]
    return [_on_cluster(replicated, mode.name), *_twins(sql, mode.name, database)]


def _replicate(sql: str, *, with_path: bool) -> str:
    """The replicated table keeps as many insert tokens as the single server's would.

    Without a path, the database's default is the same: it has the table's UUID, too.
    https://clickhouse.com/docs/engines/table-engines/mergetree-family/replication
    """

    def engine(found: re.Match[str]) -> str:
        arguments = [_PATH] if with_path else []
        if found["arguments"]:
            arguments.append(found["arguments"])
        return f"ENGINE = Replicated{found['family']}" + (f"({', '.join(arguments)})" if arguments else "")

    sql = _IN_MEMORY.sub("ENGINE = MergeTree ORDER BY tuple()", sql)
    sql = _WINDOW.sub(
        rf"replicated_deduplication_window = \1, replicated_deduplication_window_seconds = {_WINDOW_SECONDS}", sql
    )
    return _ENGINE.sub(engine, sql)


def _make_replicated_database(sql: str) -> str:
    found = _OF_ONE.match(sql)
    if not found or not found["verb"].startswith("CREATE DATABASE"):
        return sql
    return f"{sql} ENGINE = Replicated('/clickhouse/databases/{found['name']}', '{{shard}}', '{{replica}}')"


def _on_cluster(sql: str, cluster: str) -> str:
    if _OF_TWO.match(sql):
        return f"{sql} ON CLUSTER {cluster}"
    return _OF_ONE.sub(lambda found: f"{found[0]} ON CLUSTER {cluster}", sql, count=1)


def _twins(sql: str, cluster: str, database: str) -> list[str]:
    all_shards = f"{database}{ALL_SHARDS}"
    if exchanged := _OF_TWO.match(sql):
        is_exchange = exchanged["verb"].startswith("EXCHANGE")
        return [_twin(exchanged[name], cluster, database) for name in ("one", "two") if is_exchange]
    found = _OF_ONE.match(sql)
    if not found or found["name"].startswith(_LEASE):
        return []
    verb, name = found["verb"], found["name"]
    if "DATABASE" in verb:
        return [f"{verb} {name}{ALL_SHARDS} ON CLUSTER {cluster}{' SYNC' if verb.startswith('DROP') else ''}"]
    if verb.startswith("DROP"):
        return [f"DROP TABLE IF EXISTS {all_shards}.{name} ON CLUSTER {cluster} SYNC"]
    changes_columns = verb == "ALTER TABLE" and _COLUMNS.search(sql)
    return [_twin(name, cluster, database)] if " TABLE" in verb and (changes_columns or "CREATE" in verb) else []


def _twin(table: str, cluster: str, database: str) -> str:
    """Keeps all rows of a project in one shard, so that a ReplacingMergeTree can merge them.

    https://clickhouse.com/docs/engines/table-engines/special/distributed
    """
    if table.startswith(_OF_NO_PROJECT):
        key = "0"
    else:
        key = f"cityHash64({'ProjectId' if table.startswith('otel_') else 'project_id'})"
    return (
        f"CREATE OR REPLACE TABLE {database}{ALL_SHARDS}.{table} ON CLUSTER {cluster} AS {database}.{table}"
        f" ENGINE = Distributed('{cluster}', '{database}', '{table}', {key})"
    )
