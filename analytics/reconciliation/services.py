from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from analytics.clickhouse.rollups import Rollup, list_rollups
from analytics.reconciliation.comparison import differing
from analytics.reconciliation.duplicates import TABLES, doubled_days, remove_doubles
from analytics.reconciliation.leases import repair_lease
from analytics.reconciliation.rebuilding import rebuild
from analytics.reconciliation.units import Unit, in_portions, list_abandoned, list_projects, list_units

logger = logging.getLogger("analytics.reconciliation")

_LONG_AGO = date(1970, 1, 1)
# One statement compares at most this many requests, so that its memory stays bounded.
_REQUESTS_AT_ONCE = 250_000


@dataclass(frozen=True)
class Difference:
    """Wrong figures, or requests that were stored twice, of the days `first` to `last`. `equal`: it has been
    repaired.
    """

    project_id: UUID
    table: str
    first: date
    last: date
    equal: bool

    @property
    def days(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}..{self.last}"


@dataclass(frozen=True)
class Report:
    units: int
    differences: Sequence[Difference]

    @property
    def remaining(self) -> int:
        return sum(not difference.equal for difference in self.differences)


def reconcile(
    project_ids: Sequence[UUID] | None = None,
    *,
    days: int | None = None,
    dry_run: bool = False,
    now: datetime | None = None,
) -> Report:
    """Reconciles all rollups of the projects (None for all) on past days, of the last `days` (None for all).

    A dry run only compares. Raises AnalyticsUnavailableError and AnalyticsLimitError; finished repairs stay.
    """
    moment = now or datetime.now(UTC)
    since = (moment - timedelta(days=days)).date() if days is not None else _LONG_AGO
    rollups = list_rollups()
    compared = 0
    found: list[Difference] = []
    for project_id in list_projects() if project_ids is None else project_ids:
        units = [unit for unit in list_units(project_id, since) if unit.is_closed(moment)]
        compared += len(units)
        found.extend(_reconcile_project(project_id, rollups, units, dry_run=dry_run))
        if days is None:
            found.extend(_reconcile_abandoned(project_id, rollups, units, dry_run=dry_run))
    report = Report(compared, found)
    logger.info(
        "rollups.reconciled units=%d differing=%d remaining=%d dry_run=%s",
        compared, len(found), report.remaining, dry_run,
    )  # fmt: skip
    return report


def _reconcile_project(
    project_id: UUID, rollups: Sequence[Rollup], units: Sequence[Unit], *, dry_run: bool
) -> Iterator[Difference]:
    for portion in in_portions(units, max_requests=_REQUESTS_AT_ONCE):
        by_day = {unit.day: unit for unit in portion}
        for table in TABLES:
            for day in doubled_days(table, project_id, portion):
                yield _remove(project_id, table, day, dry_run=dry_run)
        for rollup in rollups:
            for day in differing(rollup, project_id, portion):
                yield _settle(project_id, rollup, by_day[day], dry_run=dry_run)


def _remove(project_id: UUID, table: str, day: date, *, dry_run: bool) -> Difference:
    """Runs before the comparison, because rollups count stored rows."""
    logger.warning("requests.doubled table=%s project_id=%s day=%s", table, project_id, day)
    if dry_run:
        return Difference(project_id, table, day, day, equal=False)
    with repair_lease(project_id):
        return Difference(project_id, table, day, day, equal=remove_doubles(table, project_id, day))


def _reconcile_abandoned(
    project_id: UUID, rollups: Sequence[Rollup], units: Sequence[Unit], *, dry_run: bool
) -> Iterator[Difference]:
    for rollup in rollups:
        for unit in list_abandoned(rollup.table, project_id, units):
            yield _settle(project_id, rollup, unit, dry_run=dry_run)


def _settle(project_id: UUID, rollup: Rollup, unit: Unit, *, dry_run: bool) -> Difference:
    logger.warning("rollup.differs table=%s project_id=%s drop_date=%s", rollup.table, project_id, unit.day)
    if dry_run:
        return Difference(project_id, rollup.table, unit.first, unit.last, equal=False)
    with repair_lease(project_id):
        equal = rebuild(rollup, project_id, unit)
    return Difference(project_id, rollup.table, unit.first, unit.last, equal=equal)
