"""What has to be true before a process serves: tables, prices, a first project. Blocking; run in a thread."""

from __future__ import annotations

import io

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from config.supervisor.first_start import Welcome, welcome
from integrations.services import load_shipped_prices


def prepare_database(base_url: str) -> Welcome | None:
    """SQL migrations, shipped prices, and on the first start the first project."""
    try:
        call_command("migrate", interactive=False, verbosity=0)
        load_shipped_prices()
        return welcome(base_url, sandbox=settings.SANDBOX)
    finally:
        connections.close_all()


def prepare_analytics() -> None:
    """ClickHouse migrations."""
    # What it applied is no news on the standard output of `serve`, whose lines are meant to be read.
    call_command("migrate_analytics", stdout=io.StringIO())
