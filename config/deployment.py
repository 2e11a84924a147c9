"""The checks of `manage.py check_deployment`: everything that keeps this host from serving correctly."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from analytics.clickhouse import client, migrator
from analytics.errors import (
    AnalyticsLimitError,
    AnalyticsQueryError,
    AnalyticsSchemaError,
    AnalyticsUnavailableError,
)
from core.encryption.canary import WrongKeysError, check_canary
from core.models import EncryptionCanary
from core.processes.schema import missing_migrations
from integrations.access.credentials import is_usable
from integrations.models import ProviderIntegration

_SECRET_CHARACTERS = 32
_REDIS_SECONDS = 3
_SKEW_SECONDS = 5.0
_LITTLE_DISK, _NO_DISK = 2 << 30, 256 << 20
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "[::1]"}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the deployment; with `is_fatal` the host should not serve."""

    check: str
    message: str
    is_fatal: bool = True


def find_problems() -> list[Problem]:
    """Returns all problems in the order of the checks. A store that is unreachable ends only its own checks."""
    return [problem for check in CHECKS for problem in check()]


def _settings() -> Iterator[Problem]:
    if settings.DEBUG:
        yield Problem("debug", "DEBUG is on: error pages show settings and code to everybody.")
    hosts = set(settings.ALLOWED_HOSTS)
    if "*" in hosts:
        yield Problem("allowed_hosts", "ALLOWED_HOSTS takes every name; name the service's own.", is_fatal=False)
    elif hosts <= _LOCAL_HOSTS:
        message = "ALLOWED_HOSTS names this machine only: the admin, and calls without a key, refuse every other Host."
        yield Problem("allowed_hosts", message, is_fatal=False)
    is_production = os.environ.get("DJANGO_SETTINGS_MODULE", "").endswith(".production")
    if settings.SANDBOX and is_production:
        yield Problem("sandbox", "SANDBOX is on under production settings: its made-up answers serve every project.")
    if len(settings.SECRET_KEY) < _SECRET_CHARACTERS:
        yield Problem("secrets", f"SECRET_KEY has fewer than {_SECRET_CHARACTERS} characters.")


def _database() -> Iterator[Problem]:
    try:
        missing = missing_migrations()
        if missing:
            yield Problem("migrations", _lacks("SQL database", missing))
            return
        yield from _keys()
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
                yield from _skew("database", float(cursor.fetchone()[0]))
    except (DatabaseError, InterfaceError) as error:
        yield Problem("database", f"The SQL database does not answer ({type(error).__name__}): see DATABASE_URL.")


def _keys() -> Iterator[Problem]:
    try:
        check_canary()
    except WrongKeysError as error:
        yield Problem("secrets", str(error))
    if not EncryptionCanary.objects.exists():
        yield Problem("secrets", "There is no canary yet: the first `manage.py serve` makes it.", is_fatal=False)
    unreadable = [str(row) for row in ProviderIntegration.objects.filter(enabled=True) if not is_usable(row)]
    if unreadable:
        message = (
            f"{len(unreadable)} stored credentials cannot be read, the first is {unreadable[0]}: enter them again."
        )
        yield Problem("credentials", message)


def _redis() -> Iterator[Problem]:
    server = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=_REDIS_SECONDS, socket_connect_timeout=_REDIS_SECONDS
    )
    try:
        seconds, microseconds = server.time()
        memory = dict(server.info("memory"))
    except (redis.RedisError, OSError) as error:
        yield Problem("redis", f"Redis does not answer ({type(error).__name__}): see REDIS_URL.")
        return
    finally:
        server.close()
    yield from _skew("redis", seconds + microseconds / 1e6)
    if memory.get("maxmemory") and memory.get("maxmemory_policy") != "noeviction":
        message = (
            f"Redis drops keys when it is full ({memory['maxmemory_policy']}), budgets among them: use noeviction."
        )
        yield Problem("redis", message, is_fatal=False)


def _clickhouse() -> Iterator[Problem]:
    try:
        [(now,)] = client.execute("SELECT toFloat64(now64(6))")
        yield from _skew("clickhouse", float(now))
        missing = migrator.missing_migrations()
    except AnalyticsSchemaError as error:
        yield Problem("migrations", error.message)
        return
    except (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError) as error:
        yield Problem("clickhouse", f"{error.message} See CLICKHOUSE_URL.")
        return
    if missing:
        yield Problem("migrations", _lacks("analytics store", missing))


def _disk() -> Iterator[Problem]:
    if not os.access(settings.VAR_DIR, os.W_OK):
        yield Problem("disk", f"VAR_DIR {settings.VAR_DIR} cannot be written.")
        return
    free = shutil.disk_usage(settings.VAR_DIR).free
    if free < _LITTLE_DISK:
        message = f"VAR_DIR {settings.VAR_DIR} has {free >> 20} MiB left."
        yield Problem("disk", message, is_fatal=free < _NO_DISK)


def _skew(store: str, its_time: float) -> Iterator[Problem]:
    skew = time.time() - its_time
    if abs(skew) > _SKEW_SECONDS:
        yield Problem("clock", f"This host's clock is {skew:+.0f} s off that of {store}.")


def _lacks(store: str, missing: list[str]) -> str:
    return f"The {store} lacks {len(missing)} migrations, the first is {missing[0]}: run `manage.py migrate_all`."


CHECKS: tuple[Callable[[], Iterator[Problem]], ...] = (_settings, _database, _redis, _clickhouse, _disk)
