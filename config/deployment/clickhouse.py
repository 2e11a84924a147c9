from __future__ import annotations

from collections.abc import Iterator

from django.core.exceptions import ImproperlyConfigured

from analytics.clickhouse import client, migrator
from analytics.clickhouse.topology.checks import find_differences, find_faults
from analytics.clickhouse.topology.mode import refuse_unproven
from analytics.errors import (
    AnalyticsLimitError,
    AnalyticsQueryError,
    AnalyticsSchemaError,
    AnalyticsUnavailableError,
)
from config.deployment.problem import Problem, lacks, skew


def check() -> Iterator[Problem]:
    try:
        refuse_unproven()
        faults = list(find_faults()) or list(find_differences())
        yield from (Problem("clickhouse", fault) for fault in faults)
        if faults:
            return
        [(now,)] = client.execute("SELECT toFloat64(now64(6))")
        yield from skew("clickhouse", float(now))
        missing = migrator.missing_migrations()
    except ImproperlyConfigured as error:
        yield Problem("clickhouse", str(error))
        return
    except AnalyticsSchemaError as error:
        yield Problem("migrations", error.message)
        return
    except (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError) as error:
        yield Problem("clickhouse", f"{error.message} See CLICKHOUSE_URL.")
        return
    if missing:
        yield Problem("migrations", lacks("analytics store", missing))
