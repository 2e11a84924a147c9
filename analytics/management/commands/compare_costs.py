from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from analytics.bills.comparison import Difference, compare
from analytics.bills.formats import BillError, Charge, read_bill
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.queries.day_costs import DayCost, list_day_costs
from core.management.requirements import require_tables
from core.models import Project
from core.selectors import find_project
from integrations.registry import is_known

_DIFFERS, _UNREADABLE = 1, 2
_CENT = "0.01"


class Command(BaseCommand):
    help = (
        "List by day and model where a provider's cost export and the request log differ. "
        "Exit code 0: nowhere; 1: somewhere; 2: the comparison could not be made."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("provider", help="the provider as integrations name it: openai, anthropic…")
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="its export of costs, JSON or CSV")
        parser.add_argument("--project", action="append", default=[], help="id or name; may be repeated; default: all")
        parser.add_argument("--tolerance", default=_CENT, metavar="DOLLARS", help=f"smaller ones pass; {_CENT}")

    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        tolerance = _dollars(options["tolerance"])
        if not is_known(options["provider"]):
            raise CommandError(f"There is no provider {options['provider']!r}.", returncode=_UNREADABLE)
        projects = [_project(name) for name in options["project"]] or _all_projects()
        charges = [charge for file in options["files"] for charge in _charges(file)]
        costs = _costs(projects, options["provider"], charges)
        differences = compare(charges, costs, tolerance=tolerance)
        for difference in differences:
            self.stdout.write(_line(difference))
        charged, recorded = sum(charge.cost for charge in charges), sum(cost.cost_usd for cost in costs)
        days = {charge.day for charge in charges}
        self.stdout.write(
            f"{len(days)} days: charged {charged:.4f}, recorded {recorded:.4f}, {len(differences)} differences"
        )
        if differences:
            raise CommandError("The charges and the recorded costs differ.", returncode=_DIFFERS)


def _dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise CommandError("--tolerance has to be an amount of dollars.", returncode=_UNREADABLE)
    return amount


def _project(name: str) -> UUID:
    project = find_project(name)
    if project is None:
        raise CommandError(f"There is no project {name}.", returncode=_UNREADABLE)
    return project.pk


def _all_projects() -> list[UUID]:
    return list(Project.objects.order_by("pk").values_list("pk", flat=True))


def _charges(file: Path) -> list[Charge]:
    try:
        return read_bill(file.read_bytes())
    except (OSError, BillError) as error:
        raise CommandError(f"{file}: {error}", returncode=_UNREADABLE) from error


def _costs(projects: Sequence[UUID], provider: str, charges: Sequence[Charge]) -> list[DayCost]:
    first, last = min(charge.day for charge in charges), max(charge.day for charge in charges)
    try:
        return [cost for project in projects for cost in list_day_costs(project, provider, first, last)]
    except (AnalyticsUnavailableError, AnalyticsLimitError) as error:
        raise CommandError(error.message, returncode=_UNREADABLE) from error


def _line(difference: Difference) -> str:
    unpriced = f", {difference.unpriced} without a price" if difference.unpriced else ""
    return (
        f"{difference.day} {difference.model or '(no model)'}: charged {difference.charged:.4f},"
        f" recorded {difference.recorded:.4f} of {difference.requests} requests{unpriced},"
        f" {difference.excess:+.4f}"
    )
