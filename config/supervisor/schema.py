"""Tables of both stores: brought up to this version, or only looked at (`serve --no-migrate`). Blocking."""

from __future__ import annotations

import io
from collections.abc import Callable

from django.core.management import call_command
from django.core.management.base import CommandError

from analytics.clickhouse import lease, migrator
from analytics.errors import AnalyticsUnavailableError
from core.locks import installation_lock
from core.schema import missing_migrations


def migrate_database() -> None:
    call_command("migrate", interactive=False, verbosity=0)


def migrate_analytics() -> None:
    # What it applied is no news on the standard output of `serve`, whose lines are meant to be read.
    call_command("migrate_analytics", stdout=io.StringIO())


def check_database() -> None:
    """Waits for whoever migrates. Raises CommandError when something is missing all the same."""

    def wait() -> None:
        with installation_lock("migrate"):
            pass

    _check("SQL database", missing_migrations, wait)


def check_analytics() -> None:
    """Waits for whoever migrates. Raises CommandError when something is missing all the same, or nobody answers."""
    try:
        _check("analytics store", migrator.missing_migrations, lease.wait_for_migrators)
    except AnalyticsUnavailableError as error:
        raise CommandError(error.message) from error


def _check(store: str, missing: Callable[[], list[str]], wait: Callable[[], None]) -> None:
    if not missing():
        return
    wait()
    if names := missing():
        raise CommandError(
            f"The {store} lacks {len(names)} migrations of this version, the first of them {names[0]}: run"
            " `manage.py migrate_all` first, or start without --no-migrate."
        )
