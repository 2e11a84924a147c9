"""`manage.py ship_records` brings the records of the spool into ClickHouse."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from analytics.shipper.loop import Shipper, SpoolLockedError

_LOCK_SECONDS = 5.0


class Command(BaseCommand):
    help = "Ship the records of the spool into ClickHouse, exactly once, until SIGTERM."
    requires_system_checks: list[str] = []

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="ship one batch and end")
        parser.add_argument("--drain", action="store_true", help="ship all there is and end")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            shipper = Shipper(settings.SPOOL_DIR, with_spans=settings.GATEWAY_SPANS, lock_seconds=_LOCK_SECONDS)
        except (SpoolLockedError, ValueError) as error:
            raise CommandError(str(error)) from error
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: shipper.stop.set())
        try:
            if options["once"]:
                shipper.ship_batch()
            elif options["drain"]:
                shipper.drain()
            else:
                shipper.run()
                return
        finally:
            shipper.close()
        self.stdout.write(f"{shipper.shipped} records shipped")
