"""The analytics store: its tables and its clock."""

from __future__ import annotations

from collections.abc import Iterator

from analytics.clickhouse import client, migrator
from analytics.errors import (
    AnalyticsLimitError,
    AnalyticsQueryError,
    AnalyticsSchemaError,
    AnalyticsUnavailableError,
)
from config.deployment.problem import Problem, lacks, skew


def check() -> Iterator[Problem]:
    try:
        [(now,)] = client.execute("SELECT toFloat64(now64(6))")
        yield from skew("clickhouse", float(now))
        missing = migrator.missing_migrations()
    except AnalyticsSchemaError as error:
        yield Problem("migrations", error.message)
        return
    except (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError) as error:
        yield Problem("clickhouse", f"{error.message} See CLICKHOUSE_URL.")
        return
    if missing:
        yield Problem("migrations", lacks("analytics store", missing))
