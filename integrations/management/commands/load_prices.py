from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from core.audit.entries import write_of_command
from integrations.pricing.services import load_shipped_prices, price_list_changes


class Command(BaseCommand):
    help = "Load the shipped price list. Prices set by hand are never touched."

    def handle(self, *args: Any, **options: Any) -> None:
        loaded = load_shipped_prices()
        write_of_command("load_prices", price_list_changes(loaded))
        self.stdout.write(f"added {loaded.added}, updated {loaded.updated}, skipped {loaded.skipped}")
