"""Compares the rollups of a project with its rows."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from analytics.clickhouse import client


@dataclass(frozen=True)
class Counts:
    """The number of requests in each table. `distinct` counts different ids, `in_session` rows with a session."""

    requests: int
    distinct: int
    in_session: int
    minute: int
    hourly: int
    daily: int
    users: int
    sessions: int

    @property
    def consistent(self) -> bool:
        """Returns whether no row is stored twice and every rollup equals the rows."""
        rollups = {self.distinct, self.minute, self.hourly, self.daily, self.users}
        return rollups == {self.requests} and self.sessions == self.in_session


_SQL = """
SELECT
    (SELECT count() FROM requests WHERE project_id = {project:UUID}) AS requests,
    (SELECT uniqExact(request_id) FROM requests WHERE project_id = {project:UUID}) AS distinct,
    (SELECT countIf(session_id != '') FROM requests WHERE project_id = {project:UUID}) AS in_session,
    (SELECT sum(r.requests) FROM requests_minute AS r WHERE project_id = {project:UUID}) AS minute,
    (SELECT sum(r.requests) FROM requests_hourly AS r WHERE project_id = {project:UUID}) AS hourly,
    (SELECT sum(r.requests) FROM requests_daily AS r WHERE project_id = {project:UUID}) AS daily,
    (SELECT sum(r.requests) FROM users_daily AS r WHERE project_id = {project:UUID}) AS users,
    (SELECT sum(r.requests) FROM session_days AS r WHERE project_id = {project:UUID}) AS sessions
"""


def count_requests(project_id: UUID) -> Counts:
    return client.query(_SQL, {"project": project_id}, row=Counts, name="counts")[0]
