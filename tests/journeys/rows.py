"""Reads a project's rows from a live service's ClickHouse, with the driver alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clickhouse_driver import Client
from clickhouse_driver.errors import Error

from tests.live.service import LiveService
from tests.services import START_SECONDS
from tests.waiting import wait_until

ROLLUPS = ("requests_minute", "requests_hourly", "requests_daily", "users_daily", "session_days")


@dataclass(frozen=True)
class Rows:
    """`outcomes` are by request id; `total` exceeds the number of ids if a row is double; `rollups` are by table."""

    outcomes: dict[str, str]
    total: int
    rollups: dict[str, int]

    @property
    def consistent(self) -> bool:
        return len(self.outcomes) == self.total and set(self.rollups.values()) == {self.total}


def read_rows(service: LiveService, project_id: str) -> Rows | None:
    try:
        address = (service.var_dir / "run" / "clickhouse.url").read_text().strip()
        with Client.from_url(address) as client:
            return rows_of(client, project_id)
    except (OSError, EOFError, Error):
        return None


def rows_when(service: LiveService, project_id: str, good: Callable[[Rows], bool], *, what: str = "") -> Rows:
    """Waits as long as further rows arrive. A shipper whose store was away for long tries it once a minute."""
    known = -1

    def news() -> Rows | None:
        rows = read_rows(service, project_id)
        return rows if rows is not None and (good(rows) or rows.total > known) else None

    while not good(rows := wait_until(news, seconds=START_SECONDS, what=what)):
        known = rows.total
    return rows


def rows_of(client: Any, project_id: str) -> Rows:
    given = {"project": project_id}
    rows = client.execute(
        "SELECT toString(request_id), toString(outcome) FROM llm.requests WHERE project_id = %(project)s", given
    )
    rollups = {
        table: client.execute(f"SELECT sum(r.requests) FROM llm.{table} AS r WHERE project_id = %(project)s", given)  # noqa: S608 - table names of this file
        for table in ROLLUPS
    }
    return Rows(dict(rows), len(rows), {table: int(found[0][0]) for table, found in rollups.items()})
