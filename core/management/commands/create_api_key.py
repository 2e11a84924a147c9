from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.dateparse import parse_date, parse_datetime

from core.audit.entries import audited_command
from core.errors import ApplicationError
from core.keys.services import issue_key
from core.management.requirements import require_project
from core.rights.scopes import SCOPES


class Command(BaseCommand):
    help = "Create an API key for a project and print it. It cannot be shown again."
    # Django's checks are about the code and import every page: most of the command's time.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="id or name of the project")
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument("--scope", action="append", choices=SCOPES, required=True, help="may be repeated")
        parser.add_argument("--expires", type=_moment, help="ISO 8601 date or time; UTC unless it says otherwise")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    @audited_command
    def handle(self, *args: Any, **options: Any) -> None:
        project = require_project(options["project"])
        try:
            _, key = issue_key(project, name=options["name"], scopes=options["scope"], expires_at=options["expires"])
        except ApplicationError as error:
            raise CommandError(error.message) from error
        self.stdout.write(json.dumps({"project_id": str(project.pk), "api_key": key}) if options["json"] else key)


def _moment(raw: str) -> datetime:
    try:
        day = parse_date(raw)
        found = parse_datetime(raw) if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError(f"{raw!r} is not an ISO 8601 date or time")
    return found if found.tzinfo else found.replace(tzinfo=UTC)
