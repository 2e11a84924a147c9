from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.clickhouse.description import describe
from analytics.errors import AnalyticsUnavailableError


class Command(BaseCommand):
    help = "Print the tables of the analytics store, which has to be running, as Markdown."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write", action="store_true", help="write docs/schema.md instead")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            page = describe()
        except AnalyticsUnavailableError as error:
            raise CommandError(error.message) from error
        if options["write"]:
            (settings.BASE_DIR / "docs" / "schema.md").write_text(page, encoding="utf-8")
        else:
            self.stdout.write(page, ending="")
