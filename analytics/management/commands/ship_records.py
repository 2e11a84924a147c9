from __future__ import annotations

import signal
import socket
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from analytics.shipper.adoption import AdoptionError, adopt
from analytics.shipper.inserting.handing_over import HandingOver
from analytics.shipper.loop import Shipper, SpoolLockedError
from analytics.shipper.second_copy import SecondCopy
from core.storage import StorageError, place_of

_LOCK_SECONDS = 5.0


class Command(BaseCommand):
    help = "Ship the records of the spool into ClickHouse, exactly once, until SIGTERM."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="ship one batch and end")
        parser.add_argument("--drain", action="store_true", help="ship all there is and end")
        parser.add_argument(
            "--spool",
            help="ship all of the spool of a host that is gone and end: its folder, or s3://… of its second copy",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["spool"]:
            self._adopt(options["spool"])
            return
        try:
            shipper = Shipper(
                settings.SPOOL_DIR,
                handing_over=HandingOver(),
                with_spans=settings.GATEWAY_SPANS,
                lock_seconds=_LOCK_SECONDS,
            )
        except (SpoolLockedError, ValueError) as error:
            raise CommandError(str(error)) from error
        _stop_by_signal(shipper)
        copy = _second_copy()
        try:
            if options["once"]:
                shipper.ship_batch()
            elif options["drain"]:
                shipper.drain()
            else:
                shipper.run()
                return
        finally:
            if copy is not None:
                copy.close()
            shipper.close()
        self.stdout.write(f"{shipper.shipped} records shipped")

    def _adopt(self, address: str) -> None:
        try:
            adopted = adopt(
                place_of(address), settings.VAR_DIR, with_spans=settings.GATEWAY_SPANS, begun=_stop_by_signal
            )
        except (AdoptionError, StorageError, ValueError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{adopted.shipped} records shipped")
        if adopted.dead:
            raise CommandError(f"{adopted.dead} records could not be stored: they are in {address}/dead.")


def _stop_by_signal(shipper: Shipper) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: shipper.stop.set())


def _second_copy() -> SecondCopy | None:
    if not settings.SPOOL_COPY:
        return None
    try:
        place = place_of(settings.SPOOL_COPY).within(socket.gethostname())
    except StorageError as error:
        raise CommandError(f"SPOOL_COPY: {error}") from error
    copy = SecondCopy(settings.SPOOL_DIR, place, seconds=settings.SPOOL_COPY_SECONDS / 2)
    copy.begin()
    return copy
