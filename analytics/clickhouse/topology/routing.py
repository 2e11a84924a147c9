"""Says on which database a statement runs, with which settings, and what its connection runs first.

A read on which a decision rests names its tables as `fresh`: its server first catches up with all that the others have
stored. Both statements share a connection, and so a server.
https://clickhouse.com/docs/sql-reference/statements/system#sync-replica
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.clickhouse.topology.ddl import definitions, is_definition
from analytics.clickhouse.topology.mode import Kind, Mode

_OF_THE_SYSTEM = re.compile(r"\bsystem\.\w|\bSYSTEM ")
_OF_DATABASES = re.compile(r"(?:CREATE|DROP) DATABASE\b")
_READ_BY_INSERT = re.compile(r"\bFROM (\w+)")
_SECONDS = 600

# A definition is done when every server has it, a deletion when no server shows the rows. A server that is away is not
# waited for by a Replicated database, whose servers catch up before they serve; ON CLUSTER fails without it.
_DEFINING: Mapping[Kind, Mapping[str, Any]] = {
    Kind.REPLICATED: {"distributed_ddl_output_mode": "none_only_active"},
    Kind.CLOUD: {"distributed_ddl_output_mode": "none_only_active"},
    Kind.CLUSTER: {"distributed_ddl_output_mode": "none"},
}
_EVERYWHERE = {
    "distributed_ddl_task_timeout": _SECONDS,
    "alter_sync": 2,
    "mutations_sync": 2,
    "lightweight_deletes_sync": 2,
}
# Rows are stored when the insert returns. A subquery about other tables reads those of all shards.
_OF_ALL_SHARDS: Mapping[str, Any] = {"distributed_foreground_insert": 1, "distributed_product_mode": "global"}
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Step:
    sql: str
    suffix: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[str, ...] = ()


def steps(sql: str, mode: Mode, database: str, *, fresh: Sequence[str] = ()) -> list[Step]:
    """Returns what to run in place of `sql`, in order. The first step's rows are the answer."""
    if mode.is_single:
        return [Step(sql)]
    if is_definition(sql):
        settings = {**_DEFINING[mode.kind], **_EVERYWHERE}
        first = () if _OF_DATABASES.match(sql) else _definitions_first(mode, database)
        before = (*first, *_rows_first(fresh, mode, database))
        return [Step(one, settings=settings, before=before) for one in definitions(sql, mode, database)]
    if _OF_THE_SYSTEM.search(sql):
        return [Step(sql, before=_definitions_first(mode, database))]
    return [Step(sql, mode.suffix, _OF_ALL_SHARDS if mode.suffix else _NOTHING, _rows_first(fresh, mode, database))]


def tables_read(sql: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_READ_BY_INSERT.findall(sql))) if "INSERT INTO" in sql else ()


def _rows_first(tables: Sequence[str], mode: Mode, database: str) -> tuple[str, ...]:
    # In a cluster the servers that read are known to the one that asks them alone, so that all of them catch up.
    where = f"ON CLUSTER {mode.name} " if mode.kind is Kind.CLUSTER else ""
    return tuple(f"SYSTEM SYNC REPLICA {where}{database}.{table} LIGHTWEIGHT" for table in tables)


def _definitions_first(mode: Mode, database: str) -> tuple[str, ...]:
    return (f"SYSTEM SYNC DATABASE REPLICA {database}",) if mode.kind is Kind.REPLICATED else ()
