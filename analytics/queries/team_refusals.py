"""Counts the requests that limits of teams have refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client


@dataclass(frozen=True)
class _Refused:
    team_id: int
    code: str
    requests: int


_SQL = """
SELECT team_id, toString(error_code) AS code, count() AS requests
FROM requests
WHERE project_id = {project:UUID} AND ts >= {since:DateTime64(6, 'UTC')}
    AND team_id != 0 AND error_code IN {codes:Array(String)}
GROUP BY team_id, code
"""


def team_refusals(project_id: UUID, since: datetime, codes: Collection[str]) -> Mapping[int, Mapping[str, int]]:
    """Returns the number of requests since a time that ended with one of the error codes, by the id of the team and the
    code. Teams without any are left out."""
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    params = {"project": project_id, "since": since, "codes": sorted(codes)}
    for row in client.query(_SQL, params, row=_Refused, name="teams.refused"):
        found[row.team_id][row.code] = row.requests
    return found
