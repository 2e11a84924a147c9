from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.audit.entries import write_of_command
from integrations.errors import SyncRunningError
from integrations.models import PriceSyncLog
from integrations.pricing.services import price_list_changes
from integrations.pricing.sync import sync_prices


class Command(BaseCommand):
    help = "Sync the prices of all models from both catalogs. Prices set by hand are never touched."

    def add_arguments(self, parser: CommandParser) -> None:
        for letter in ("a", "b"):
            parser.add_argument(
                f"--catalog-{letter}", metavar="FILE|URL", help="Instead of the address in the settings."
            )

    def handle(self, *args: Any, **options: Any) -> None:
        named = {source: options[source] for source in ("catalog_a", "catalog_b") if options[source]}
        try:
            log = sync_prices(trigger=PriceSyncLog.Trigger.COMMAND, catalogs={**settings.PRICING_CATALOGS, **named})
        except SyncRunningError as error:
            raise CommandError(error.message) from error
        write_of_command("sync_pricing", price_list_changes(log))
        self.stdout.write(
            f"{log.status}: added {log.added}, updated {log.updated}, removed {log.removed}, skipped {log.skipped}"
        )
        for problem in log.errors:
            self.stderr.write(" ".join(filter(None, (problem["source"], problem["model"], problem["message"]))))
        if log.status == PriceSyncLog.Status.FAILED:
            raise CommandError("No catalog could be read; the prices are as they were.")
