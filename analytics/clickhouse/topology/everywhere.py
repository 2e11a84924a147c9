from __future__ import annotations

from collections.abc import Mapping

from analytics.clickhouse.address import database
from analytics.clickhouse.topology.mode import ALL_SHARDS, mode

# A server that cannot be reached runs no statement, and must not keep a rollout from going on.
REACHABLE: Mapping[str, int] = {"skip_unavailable_shards": 1}


def system(table: str) -> str:
    return mode().system(table, "" if mode().is_single else database())


def is_running() -> str:
    """Returns a condition on `system.processes`: a statement of this store that contains `{text}`. Parameters: `texts`.

    A shard that receives rows from another server finds the database in the statement's text. The query itself contains
    the text too, so queries do not count; each server runs its part under an id of its own.
    """
    if mode().is_single:
        return "current_database = currentDatabase() AND query_id != queryID() AND position(query, {text:String}) > 0"
    own = f"current_database IN ('{database()}', '{database()}{ALL_SHARDS}') AND position(query, {{text:String}}) > 0"
    return f"query_kind != 'Select' AND ({own} OR position(query, {{elsewhere:String}}) > 0)"


def texts(text: str) -> Mapping[str, str]:
    if mode().is_single:
        return {"text": text}
    return {"text": text, "elsewhere": text.replace("INTO ", f"INTO {database()}.")}
