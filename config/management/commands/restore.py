from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError

from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError, RepairBusyError
from config.backup.errors import BackupError
from config.backup.progress import Steps
from config.backup.restoring import Restore, newest
from core.audit.entries import write_of_command
from core.audit.recording import Change
from core.storage import StorageError, place_of

_STORE_ERRORS = (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError, RepairBusyError)


class Command(BaseCommand):
    help = "Restore a backup into an empty SQL database and an empty analytics store, before the first `serve`."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("place", help="the folder, or s3://bucket/prefix, that `manage.py backup` was given")
        parser.add_argument("--name", help="which backup there, as 20260131T040000Z; the newest when it is left out")
        parser.add_argument("--without-log", action="store_true", help="the configuration alone")

    def handle(self, *args: Any, **options: Any) -> None:
        os.umask(0o077)
        try:
            place = place_of(options["place"])
            restore = Restore(
                place, options["name"] or newest(place), Steps(self.stdout.write), log=not options["without_log"]
            )
            restore.run()
        except (BackupError, StorageError, *_STORE_ERRORS) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted: nothing was changed.") from None
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(f"The SQL database does not answer: {' '.join(str(error).split())}") from error
        address = place.within(restore.manifest.name).address
        write_of_command("restore", [Change("backup", restore.manifest.name, address, None, "restored")])
        self.stdout.write(f"restored: {address}")
