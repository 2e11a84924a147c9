from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand

from analytics.shipper.inserting.inserter import Inserter


class Command(BaseCommand):
    help = "Insert the small batches of all hosts together into ClickHouse, until SIGTERM."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        inserter = Inserter()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: inserter.stop.set())
        inserter.run()
