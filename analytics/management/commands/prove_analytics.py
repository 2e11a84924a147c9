from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from analytics.clickhouse.topology.mode import mode
from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError
from analytics.proof.promises import PROMISES
from analytics.proof.run import prove
from analytics.proof.servers import NoServerError


class Command(BaseCommand):
    help = (
        "Prove in a scratch database, which is dropped again, that the servers at CLICKHOUSE_URL keep what"
        " CLICKHOUSE_MODE promises: the same tables everywhere, each batch once, reads after writes, one migrator."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--server", action="append", default=[], metavar="HOST:PORT",
            help="a server of the store, by its own address; several times. Without it those that the store lists",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        broken = 0
        try:
            for number, result in enumerate(prove(options["server"]), 1):
                broken += bool(result.reason)
                verdict = f"BROKEN: {result.reason}" if result.reason else "kept"
                self.stdout.write(f"{number}/{len(PROMISES)} {result.name}, {result.text}: {verdict}")
                self.stdout.flush()
        except AnalyticsQueryError as error:
            raise CommandError(f"{error.message} {error.reason.splitlines()[0]} Nothing was changed.") from error
        except (AnalyticsUnavailableError, AnalyticsLimitError) as error:
            raise CommandError(f"{error.message} See CLICKHOUSE_URL.") from error
        except (NoServerError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        if broken:
            raise CommandError(
                f"{broken} of {len(PROMISES)} promises of CLICKHOUSE_MODE={settings.CLICKHOUSE_MODE} are broken."
            )
        self.stdout.write(f"All {len(PROMISES)} promises of CLICKHOUSE_MODE={settings.CLICKHOUSE_MODE} are kept.")
        if not mode().is_single:
            self.stdout.write("ANALYTICS_UNPROVEN=1 starts the gateway on these servers.")
