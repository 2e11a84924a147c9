from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analytics.clickhouse.migrator import migrate
from analytics.errors import AnalyticsUnavailableError


class Command(BaseCommand):
    help = "Apply the migrations of the analytics store. Running it again changes nothing."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            applied = migrate()
        except AnalyticsUnavailableError as error:
            raise CommandError(error.message) from error
        for name in applied:
            self.stdout.write(f"applied {name}")
        if not applied:
            self.stdout.write("nothing to apply")
