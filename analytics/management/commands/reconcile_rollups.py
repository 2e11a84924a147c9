from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError, RepairBusyError
from analytics.reconciliation.services import reconcile
from core.selectors import find_project


class Command(BaseCommand):
    help = "Compare every rollup with the requests it is made of, and make the days again that differ."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", help="id or name of one project; all of them otherwise")
        parser.add_argument("--days", type=int, help="look at the last so many days only")
        parser.add_argument("--dry-run", action="store_true", help="look, and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["days"] is not None and options["days"] < 1:
            raise CommandError("--days has to be 1 or more.")
        project_ids = None
        if options["project"]:
            project = find_project(options["project"])
            if project is None:
                raise CommandError(f"There is no project {options['project']}.")
            project_ids = [project.pk]
        try:
            report = reconcile(project_ids, days=options["days"], dry_run=options["dry_run"])
        except (AnalyticsUnavailableError, AnalyticsLimitError, RepairBusyError) as error:
            raise CommandError(error.message) from error
        for found in report.differences:
            what = "repaired" if found.equal else "differs"
            self.stdout.write(f"{what} {found.table} project={found.project_id} days={found.days}")
        self.stdout.write(
            f"{report.units} days compared, {len(report.differences)} differed, {report.remaining} still do"
        )
        if report.remaining:
            raise CommandError("Figures differ from their requests.")
