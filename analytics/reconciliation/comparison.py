"""Compares a rollup with the requests from which it was made.

Both sides are reduced to a few figures per unit: sums, extremes, and two checksums that also change if figures are
under a wrong key. None depends on whether parts have been merged. States of percentiles and distinct counts are not
compared: another merge order gives other bytes for the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.clickhouse.late_figures import settle
from analytics.clickhouse.rollups import Column, Rollup
from analytics.reconciliation.units import Unit

BYTES = 190 * 1024 * 1024
LIMITS: dict[str, Any] = {
    "max_memory_usage": BYTES,
    "max_bytes_before_external_group_by": BYTES // 3,
    "max_execution_time": 600,
    "max_threads": 2,
}

_PLAIN = {
    "SimpleAggregateFunction(sum": "sum",
    "SimpleAggregateFunction(min": "min",
    "SimpleAggregateFunction(max": "max",
}


@dataclass(frozen=True)
class Figures:
    day: date
    figures: list[str]


def differing(
    rollup: Rollup, project_id: UUID, units: Sequence[Unit], condition: bool = False, **persons: Any
) -> list[date]:
    """Returns the days of expiry at which the rollup differs.

    `condition` restricts the comparison to rows that name the given sessions and users.
    """
    settle()
    return _differences(
        _figures(rollup, _own(rollup, condition), project_id, units, persons),
        _figures(rollup, _raw(rollup, condition), project_id, units, persons),
    )


def scope(project_id: UUID, units: Sequence[Unit]) -> dict[str, Any]:
    return {
        "project": project_id,
        "units": [unit.day.isoformat() for unit in units],
        "first": min(unit.first for unit in units).isoformat(),
        "last": max(unit.last for unit in units).isoformat(),
    }


def _own(rollup: Rollup, condition: bool) -> str:
    where = "project_id = {project:UUID} AND drop_date IN {units:Array(Date)}"
    persons = f" AND {rollup.persons}" if condition else ""
    return f"SELECT * FROM {rollup.table} WHERE {where}{persons}"


def _raw(rollup: Rollup, condition: bool) -> str:
    return rollup.select_again(rollup.persons if condition else "")


def _figures(
    rollup: Rollup, source: str, project_id: UUID, units: Sequence[Unit], persons: dict[str, Any]
) -> dict[date, list[str]]:
    # Values have the table's types, since the hash of a number depends on its width.
    columns = ", ".join(_cast(column, rollup) for column in rollup.columns if _is_compared(column, rollup))
    figures = ", ".join(_expressions(rollup))
    sql = f"SELECT drop_date AS day, [{figures}] AS figures FROM (SELECT {columns} FROM ({source})) GROUP BY drop_date"
    rows = client.query(
        sql,
        {**scope(project_id, units), **persons},
        row=Figures,
        name=f"reconciliation.{rollup.table}",
        database_settings=LIMITS,
        fresh=(rollup.table, "requests"),
    )
    return {row.day: row.figures for row in rows}


def _is_compared(column: Column, rollup: Rollup) -> bool:
    return column.name in rollup.key or column.type.startswith(tuple(_PLAIN))


def _cast(column: Column, rollup: Rollup) -> str:
    if column.name not in rollup.key:
        return column.name
    kind = column.type.replace("'", "\\'")
    return f"CAST({column.name}, '{kind}') AS {column.name}"


def _expressions(rollup: Rollup) -> list[str]:
    key = f"cityHash64({', '.join(rollup.key)})"
    expressions = [f"toString(sumDistinct({key}))"]
    for column in rollup.columns:
        function = next((name for start, name in _PLAIN.items() if column.type.startswith(start)), "")
        if function:
            expressions.append(f"toString({function}({column.name}))")
        if column.name == "requests":
            # Sums of 64 bits may overflow, which does not harm a checksum.
            expressions.append(f"toString(sum({key} * requests))")
    return expressions


def _differences(own: dict[date, list[str]], raw: dict[date, list[str]]) -> list[date]:
    return sorted(day for day in own.keys() | raw.keys() if own.get(day) != raw.get(day))
