from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection

from analytics.clickhouse import lease, migrator
from core.processes.locks import installation_lock
from core.processes.schema import missing_migrations

logger = logging.getLogger("config.supervisor")

_LOOK_SECONDS = 1.0


def wait_for_database() -> None:
    """Waits for a database server that takes no connections yet, up to DATABASE_WAIT_SECONDS."""
    if connection.vendor != "sqlite":
        _wait("database", _connection_problem)


def _connection_problem() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except OperationalError as error:
        connection.close()
        return " ".join(str(error).split())
    return ""


def _wait(what: str, problem: Callable[[], str]) -> None:
    """Returns once there is no `problem` any more, or the time is over; says each other problem once."""
    ends, said = time.monotonic() + settings.DATABASE_WAIT_SECONDS, ""
    while (found := problem()) and (left := ends - time.monotonic()) > 0:
        if found != said:
            logger.warning("%s.waiting seconds_left=%.0f reason=%s", what, left, found)
            said = found
        time.sleep(min(_LOOK_SECONDS, left))
    if said and not found:
        logger.info("%s.ready", what)


def migrate_database() -> None:
    call_command("migrate", interactive=False, verbosity=0)


def check_database() -> None:
    """Waits for another process that migrates, also for one that has yet to begin where hosts share a server. Raises
    CommandError if migrations are still missing."""

    def problem() -> str:
        with installation_lock("migrate"):
            return "the tables of this version are not there yet" if missing_migrations() else ""

    def wait() -> None:
        if connection.vendor == "sqlite":
            problem()
        else:
            _wait("tables", problem)

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
