from __future__ import annotations

import asyncio
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from analytics.trace_export.exporter import Exporter, ExporterLockedError


class Command(BaseCommand):
    help = "Export the spans of requests to the trace destinations of their projects, until SIGTERM."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            exporter = Exporter(settings.SPOOL_DIR)
        except ExporterLockedError as error:
            raise CommandError(str(error)) from error
        try:
            asyncio.run(_run(exporter))
        finally:
            exporter.close()


async def _run(exporter: Exporter) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await exporter.run(stop)
