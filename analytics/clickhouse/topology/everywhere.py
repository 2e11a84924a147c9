"""The one place that says where the tables of `system` are asked: each server knows only of what it does itself."""

from __future__ import annotations

from collections.abc import Mapping

from analytics.clickhouse.address import database
from analytics.clickhouse.topology.mode import ALL_SHARDS, mode

# A server that cannot be reached runs no statement, and must not keep a rollout from going on.
REACHABLE: Mapping[str, int] = {"skip_unavailable_shards": 1}


def system(table: str) -> str:
    """Returns SQL for a table of `system` with the rows of all servers of the store."""
    return mode().system(table, "" if mode().is_single else database())


def is_running() -> str:
    """Returns the condition that a row of `system.processes` is a statement of this store that holds `{text}`, for
    parameters of `texts`.

    A shard that gets rows from another server is told the database in the statement itself. The question holds the text
    too, so that questions do not count; a server gives its part of the question an id of its own.
    """
    if mode().is_single:
        return "current_database = currentDatabase() AND query_id != queryID() AND position(query, {text:String}) > 0"
    own = f"current_database IN ('{database()}', '{database()}{ALL_SHARDS}') AND position(query, {{text:String}}) > 0"
    return f"query_kind != 'Select' AND ({own} OR position(query, {{elsewhere:String}}) > 0)"


def texts(text: str) -> Mapping[str, str]:
    """Returns the parameters of `is_running`: the text, and as a server writes it to another."""
    if mode().is_single:
        return {"text": text}
    return {"text": text, "elsewhere": text.replace("INTO ", f"INTO {database()}.")}
