"""`manage.py migrate`: Django's command, run by one process at a time.

Django takes no lock: of two processes that migrate together, one fails at the first table that the other has made.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate

from core.processes.locks import installation_lock

# These options only look at the migrations.
_READS = ("plan", "check_unapplied")


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        if any(options.get(name) for name in _READS):
            super().handle(*args, **options)
            return
        with installation_lock("migrate", using=options["database"]):
            super().handle(*args, **options)
