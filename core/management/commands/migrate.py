"""Django's `migrate`, run by one process at a time; an empty database gets the tables from a snapshot.

Django takes no lock: of two concurrent runs, one fails at the first table that the other made.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from core.processes.locks import installation_lock
from core.processes.schema import load_snapshot

# These options only look at the migrations.
_READS = ("plan", "check_unapplied")
# These choose among the migrations, or among what they do.
_CHOOSES = ("app_label", "fake", "prune")


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        if any(options.get(name) for name in _READS):
            super().handle(*args, **options)
            return
        with installation_lock("migrate", using=options["database"]):
            is_whole = not any(options.get(name) for name in _CHOOSES)
            if is_whole and load_snapshot(connections[options["database"]]) and options["verbosity"]:
                self.stdout.write("Made the tables of all migrations from their snapshot.")
            super().handle(*args, **options)
