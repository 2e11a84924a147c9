from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError

from analytics.errors import AnalyticsUnavailableError
from config.backup.errors import BackupError
from config.backup.making import make_backup, remove_old
from config.backup.progress import Steps
from core.audit.entries import write_of_command
from core.audit.recording import CREATED, DELETED, Change
from core.storage import Place, StorageError, place_of


class Command(BaseCommand):
    help = "Back up the configuration and the request log, while the installation serves."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("place", help="a folder, or s3://bucket/prefix; each backup is a folder of its own in it")
        parser.add_argument("--without-log", action="store_true", help="the configuration alone, which takes seconds")
        parser.add_argument("--without-secrets", action="store_true", help="leave encrypted secrets out")
        parser.add_argument("--keep", type=int, help="remove all but the newest so many with a log, or without one")

    def handle(self, *args: Any, **options: Any) -> None:
        os.umask(0o077)
        if options["keep"] is not None and options["keep"] < 1:
            raise CommandError("--keep has to be 1 or more.")
        try:
            place = place_of(options["place"])
            manifest = make_backup(
                place,
                Steps(self.stdout.write),
                secrets=not options["without_secrets"],
                log=not options["without_log"],
            )
            _audit(place, manifest.name, CREATED)
            if options["keep"] is not None:
                for name in remove_old(place, options["keep"], log=not options["without_log"]):
                    _audit(place, name, DELETED)
                    self.stdout.write(f"removed: {name}")
        except (BackupError, StorageError, AnalyticsUnavailableError) as error:
            raise CommandError(str(error)) from error
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(f"The SQL database does not answer: {' '.join(str(error).split())}") from error
        self.stdout.write(f"backup: {place.within(manifest.name).address}")


def _audit(place: Place, name: str, action: str) -> None:
    write_of_command("backup", [Change("backup", name, place.within(name).address, None, action)])
