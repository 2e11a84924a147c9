from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from analytics.clickhouse import client
from analytics.clickhouse.topology import everywhere
from analytics.clickhouse.topology.mode import mode

_VISIBLE = """
SELECT now64(3, 'UTC') AS now, max(elapsed) AS max_elapsed_seconds
FROM system.processes
WHERE current_database = currentDatabase() AND startsWith(query, 'INSERT INTO ingest ')
"""

# Each server has a clock of its own, and says what runs a moment before it says what time it is.
_VISIBLE_EVERYWHERE = """
SELECT min(complete_until) AS now, 0. AS max_elapsed_seconds
FROM (
    SELECT
        hostName() AS host, tcpPort() AS port,
        min(nowInBlock64(3, 'UTC')) - toIntervalSecond(1)
            - toIntervalMillisecond(toUInt64(1000 * maxIf(elapsed, {is_running}))) AS complete_until
    FROM {processes}
    GROUP BY host, port
)
"""
_INSERT = "INSERT INTO ingest "


@dataclass(frozen=True)
class _Visible:
    now: datetime
    max_elapsed_seconds: float


def visible_until() -> datetime:
    """The time up to which the rows are complete: every row with an earlier `recorded_at` can be read, and none will
    come.

    A row has the time at which its insert began, and is visible when the insert has ended.
    """
    if mode().is_single:
        [seen] = client.query(_VISIBLE, {}, row=_Visible, name="variants.visible")
    else:
        sql = _VISIBLE_EVERYWHERE.format(processes=everywhere.system("processes"), is_running=everywhere.is_running())
        [seen] = client.query(
            sql,
            everywhere.texts(_INSERT),
            row=_Visible,
            name="variants.visible",
            database_settings=everywhere.REACHABLE,
        )
    return seen.now - timedelta(seconds=seen.max_elapsed_seconds)


def store_time() -> datetime:
    return client.query("SELECT now64(3, 'UTC')", {}, row=datetime, name="store.time")[0]
