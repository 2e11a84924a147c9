"""`manage.py migrate_all`: migrates the tables of both stores, as a job before the hosts of a new version start."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from analytics.clickhouse import migrator
from analytics.errors import AnalyticsUnavailableError
from config.supervisor.schema import wait_for_database


class Command(BaseCommand):
    help = "Apply the migrations of the SQL database and of the analytics store. Running it again changes nothing."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        # A store that is refused must not leave the other one migrated.
        try:
            migrator.look()
        except (AnalyticsUnavailableError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        wait_for_database()
        call_command("migrate", interactive=False, verbosity=options["verbosity"], stdout=self.stdout)
        call_command("migrate_analytics", stdout=self.stdout)
