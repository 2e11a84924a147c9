from __future__ import annotations

from functools import cache
from pathlib import Path

from clickhouse_driver import errors as driver_errors
from django.conf import settings

from analytics.clickhouse.address import resolve_url
from analytics.clickhouse.connections import connections
from analytics.clickhouse.log_columns import later_columns
from analytics.clickhouse.topology.mode import mode
from analytics.errors import AnalyticsUnavailableError

SCHEMA_NUMBER = 56
MIGRATIONS = Path(__file__).parent / "migrations"
FILES = "[0-9]*_*.sql"


def is_behind() -> bool:
    """Returns True also if the store does not answer.

    This bypasses `client`, which calls it about statements that the store refused.
    """
    try:
        with connections().lent(resolve_url(mode().suffix), settings.CLICKHOUSE_SILENT_SECONDS) as client:
            rows = client.execute("SELECT number FROM schema_migrations")
    except (AnalyticsUnavailableError, driver_errors.Error, OSError, EOFError):
        return True
    return not _needed() <= {number for (number,) in rows}


@cache
def _needed() -> frozenset[int]:
    files = (int(path.name.partition("_")[0]) for path in MIGRATIONS.glob(FILES))
    return frozenset({SCHEMA_NUMBER, *files, *(column.number for column in later_columns())})
