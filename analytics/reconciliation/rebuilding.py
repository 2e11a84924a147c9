"""Rebuilds rows of a rollup from its requests, and compares the result with them.

Records may arrive between the steps, and are then counted twice or not at all. The comparison detects this, and the
rows are rebuilt once more. Past days receive next to no records.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.clickhouse.rollups import Rollup
from analytics.reconciliation.comparison import LIMITS, differing, scope
from analytics.reconciliation.units import Unit

logger = logging.getLogger("analytics.reconciliation")

_TRIES = 5
# The setting makes the store accept a rebuilt row although an equal one was inserted before.
_INSERT = {**LIMITS, "insert_deduplicate": 0, "max_partitions_per_insert_block": 0}


def rebuild(rollup: Rollup, project_id: UUID, unit: Unit) -> bool:
    """Returns False if the rows still differ after several tries."""
    return _until_equal(rollup, project_id, [unit], condition=False, persons={})


def rebuild_persons(
    rollup: Rollup,
    project_id: UUID,
    units: Sequence[Unit],
    *,
    sessions: Sequence[str],
    users: Sequence[str],
    known_to_differ: bool = False,
) -> bool:
    """Rebuilds only rows that name one of the sessions or users.

    Returns False if they still differ after several tries.
    """
    persons = {"sessions": list(sessions), "users": list(users)}
    if known_to_differ:
        _replace(rollup, {**scope(project_id, units), **persons}, condition=True)
    return _until_equal(rollup, project_id, units, condition=True, persons=persons)


def _until_equal(
    rollup: Rollup, project_id: UUID, units: Sequence[Unit], *, condition: bool, persons: dict[str, Any]
) -> bool:
    for _ in range(_TRIES):
        if not differing(rollup, project_id, units, condition, **persons):
            return True
        _replace(rollup, {**scope(project_id, units), **persons}, condition=condition)
    settled = not differing(rollup, project_id, units, condition, **persons)
    if not settled:
        logger.warning("rollup.unsettled table=%s project_id=%s units=%d", rollup.table, project_id, len(units))
    return settled


def _replace(rollup: Rollup, parameters: dict[str, Any], *, condition: bool) -> None:
    own = f" AND {rollup.persons}" if condition else ""
    where = f"project_id = {{project:UUID}} AND drop_date IN {{units:Array(Date)}}{own}"
    delete = f"DELETE FROM {rollup.table} WHERE {where}"
    client.execute(delete, parameters, settings=LIMITS)
    columns = ", ".join(column.name for column in rollup.columns)
    again = rollup.select_again(rollup.persons if condition else "")
    insert = f"INSERT INTO {rollup.table} ({columns}) SELECT {columns} FROM ({again})"
    client.execute(insert, parameters, settings=_INSERT, fresh=("requests",))
