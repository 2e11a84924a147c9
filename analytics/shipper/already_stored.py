from __future__ import annotations

import time
from itertools import compress

from analytics.clickhouse import client, visible
from analytics.errors import AnalyticsUnavailableError
from analytics.request_log.columns import Columns

_WAIT_SECONDS = 30.0
_LOOK_EVERY_SECONDS = 0.05
_STORED = """
SELECT toString(request_id) FROM requests
WHERE project_id IN {projects:Array(UUID)} AND request_id IN {ids:Array(UUID)}
    AND ts >= fromUnixTimestamp64Micro({first:Int64}) AND ts <= fromUnixTimestamp64Micro({last:Int64})
"""


def missing(columns: Columns) -> Columns:
    """Returns the rows that are not in the request log, or no columns if all are. Raises the errors of the store."""
    requests = [str(request) for request in columns["request_id"]]
    values = {
        "projects": sorted({str(project) for project in columns["project_id"]}),
        "ids": requests,
        "first": min(columns["ts"]),
        "last": max(columns["ts"]),
    }
    stored = {identifier for (identifier,) in client.execute(_STORED, values, fresh=("requests",))}
    chosen = [request not in stored for request in requests]
    return {name: [*compress(given, chosen)] for name, given in columns.items()} if any(chosen) else {}


def left_over(columns: Columns) -> Columns:
    """Returns the rows that are in no insert which runs at the time of the call, and that no earlier one has stored."""
    _wait_for_inserts()
    return missing(columns)


def _wait_for_inserts() -> None:
    now, deadline = visible.store_time(), time.monotonic() + _WAIT_SECONDS
    while visible.visible_until() < now:
        if time.monotonic() > deadline:
            raise AnalyticsUnavailableError("An insert of the store has not ended yet.")
        time.sleep(_LOOK_EVERY_SECONDS)
