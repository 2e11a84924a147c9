from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError
from tqdm import tqdm

from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError, RepairBusyError
from analytics.moving.errors import CannotMoveError
from analytics.moving.move import move, settle


class Command(BaseCommand):
    help = (
        "Move the request log from a database of one server into that of CLICKHOUSE_URL and CLICKHOUSE_MODE, on the"
        " same server. Records wait in the spools meanwhile. Run it again when all hosts have the new settings, and"
        " after it was interrupted."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--from", dest="source", required=True, metavar="DATABASE", help="the database that has the request log"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            copied = self._move(options["source"])
            # `disable=None` shows a bar on a terminal alone.
            with tqdm(desc="deletions", unit=" deletions", disable=None, file=sys.stderr) as bar:
                erased = settle(options["source"], bar.update)
        except (CannotMoveError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        except AnalyticsQueryError as error:
            raise CommandError(f"{error.message} {error.reason.splitlines()[0]}") from error
        except (AnalyticsUnavailableError, AnalyticsLimitError, RepairBusyError) as error:
            raise CommandError(f"{error.message} Run the command again.") from error
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(f"The SQL database does not answer: {' '.join(str(error).split())}") from error
        self.stdout.write(
            f"{copied} partitions were copied; every table has what it has in {options['source']}, and {erased}"
            " requests were erased that had been deleted meanwhile."
        )

    def _move(self, source: str) -> int:
        copied = 0
        for moved in move(source):
            copied += moved.copied
            verb = "copied" if moved.copied else "there already"
            self.stdout.write(f"{moved.number}/{moved.partitions} {moved.table} {moved.partition}: {verb}")
            self.stdout.flush()
        return copied
