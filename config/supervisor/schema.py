from __future__ import annotations

from collections.abc import Callable

from django.core.management import call_command
from django.core.management.base import CommandError

from analytics.clickhouse import lease, migrator
from core.processes.locks import installation_lock
from core.processes.schema import missing_migrations


def migrate_database() -> None:
    call_command("migrate", interactive=False, verbosity=0)


def check_database() -> None:
    """Waits for another process that migrates. Raises CommandError if migrations are still missing."""

    def wait() -> None:
        with installation_lock("migrate"):
            pass

    _check("SQL database", missing_migrations, wait)


def check_analytics() -> None:
    """Waits for another migrator. Raises CommandError if migrations are still missing, and the store's errors."""
    _check("analytics store", migrator.missing_migrations, lease.wait_for_migrators)


def _check(store: str, missing: Callable[[], list[str]], wait: Callable[[], None]) -> None:
    if not missing():
        return
    wait()
    if names := missing():
        raise CommandError(
            f"The {store} lacks {len(names)} migrations of this version, the first of them {names[0]}: run"
            " `manage.py migrate_all` first, or start without --no-migrate."
        )
