"""`manage.py migrate_all`: migrates the tables of both stores, as a job before the hosts of a new version start."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Apply the migrations of the SQL database and of the analytics store. Running it again changes nothing."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=options["verbosity"], stdout=self.stdout)
        call_command("migrate_analytics", stdout=self.stdout)
