"""Finds requests that are stored more than once, and removes all of their rows but one.

A batch's token normally prevents duplicates. But a table recreated by an upgrade knows no earlier tokens, so a batch is
stored again if its shipper did not learn, right before the upgrade, that it was stored.

A row to remove is named by its place in its part. If a merge moves the row between the two statements, nothing is
removed until the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from analytics.clickhouse import client
from analytics.reconciliation.comparison import LIMITS, scope
from analytics.reconciliation.units import Unit

TABLES = ("requests", "payloads")

_PLACE = "concat(_part, ' ', toString(_part_offset))"
_MAX_AT_ONCE = 5_000


_OF_UNITS = """project_id = {project:UUID}
    AND ts >= toDateTime64({first:Date}, 6, 'UTC') AND ts < toDateTime64({last:Date} + 1, 6, 'UTC')"""
_DAYS = """
SELECT toDate(ts, 'UTC') AS day FROM {table} WHERE {where}
GROUP BY day HAVING count() > uniqExact(request_id) ORDER BY day
"""
_PLACES = """
SELECT place FROM (
    SELECT {place} AS place, row_number() OVER (PARTITION BY request_id ORDER BY _part, _part_offset) AS number
    FROM {table}
    WHERE {where} AND request_id IN (
        SELECT request_id FROM {table} WHERE {where} GROUP BY request_id HAVING count() > 1
    )
) WHERE number > 1 LIMIT {limit}
"""


def doubled_days(table: str, project_id: UUID, units: Sequence[Unit]) -> list[date]:
    sql = _DAYS.format(table=table, where=_OF_UNITS)
    name = f"reconciliation.doubled.{table}"
    return client.query(sql, scope(project_id, units), row=date, name=name, database_settings=LIMITS, fresh=(table,))


def remove_doubles(table: str, project_id: UUID, day: date) -> bool:
    """Returns False if duplicates are left."""
    unit = Unit(day, day, day, 0)
    sql = _PLACES.format(table=table, where=_OF_UNITS, place=_PLACE, limit=_MAX_AT_ONCE)
    found = client.execute(sql, scope(project_id, [unit]), settings=LIMITS, fresh=(table,))
    places = [place for (place,) in found]
    if places:
        remove = f"DELETE FROM {table} WHERE {_OF_UNITS} AND {_PLACE} IN {{places:Array(String)}}"
        client.execute(remove, {**scope(project_id, [unit]), "places": places}, settings=LIMITS)
    return not doubled_days(table, project_id, [unit])
