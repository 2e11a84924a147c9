from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from analytics.clickhouse import client

# Records of the last day may still be on their way for a while after midnight.
_GRACE = timedelta(hours=1)


@dataclass(frozen=True)
class Unit:
    """The requests of a project with one day of expiry: their number, and their days `first` to `last` (UTC).

    A unit covers whole days, so a record that arrives late belongs to the unit of its day.
    """

    day: date
    first: date
    last: date
    requests: int

    def is_closed(self, now: datetime) -> bool:
        return self.last < (now - _GRACE).date()


_NEVER = date(1970, 1, 1)
_ABANDONED = """
SELECT DISTINCT drop_date AS day FROM {table}
WHERE project_id = {{project:UUID}} AND drop_date > today() AND drop_date < {{last:Date}}
    AND drop_date NOT IN (SELECT DISTINCT drop_date FROM requests WHERE project_id = {{project:UUID}})
ORDER BY day
"""


_PROJECTS = "SELECT DISTINCT project_id FROM requests ORDER BY project_id"
# Rows that expire today may be gone from one table and not yet from another.
_UNITS = """
SELECT drop_date AS day, toDate(min(ts), 'UTC') AS first, toDate(max(ts), 'UTC') AS last, count() AS requests
FROM requests
WHERE project_id = {project:UUID} AND drop_date > today()
GROUP BY drop_date HAVING last >= {since:Date} ORDER BY drop_date
"""


def list_projects() -> list[UUID]:
    return client.query(_PROJECTS, {}, row=UUID, name="reconciliation.projects")


def list_units(project_id: UUID, since: date) -> list[Unit]:
    return client.query(
        _UNITS, {"project": project_id, "since": since}, row=Unit, name="reconciliation.units", fresh=("requests",)
    )


def list_abandoned(table: str, project_id: UUID, units: Sequence[Unit]) -> list[Unit]:
    """Returns days of expiry that have figures in the rollup but no requests.

    Days after the last closed unit are left out: they may belong to a day that is just beginning.
    """
    if not units:
        return []
    sql = _ABANDONED.format(table=table)
    values = {
        "project": project_id,
        "last": max(unit.day for unit in units).isoformat(),
    }
    found = client.query(sql, values, row=date, name="reconciliation.abandoned", fresh=(table, "requests"))
    return [Unit(day, _NEVER, _NEVER, 0) for day in found]


def in_portions(units: Iterable[Unit], *, max_requests: int) -> Iterator[Sequence[Unit]]:
    """Groups units in order, up to `max_requests` each; a larger unit forms its own group."""
    portion: list[Unit] = []
    for unit in units:
        if portion and sum(one.requests for one in portion) + unit.requests > max_requests:
            yield portion
            portion = []
        portion.append(unit)
    if portion:
        yield portion
