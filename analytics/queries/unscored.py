from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client

_ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Unscored:
    request_id: UUID
    ts: datetime
    value: str


# A score is never older than its request, and a withdrawn score is not made again. The server remembers ids of requests
# in the range only, however many scores there are.
_SQL = """
SELECT r.request_id AS request_id, r.ts AS ts, r.attributes[{attribute:String}] AS value
FROM requests AS r
WHERE r.project_id = {project:UUID} AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}
    AND (r.ts, r.request_id) > ({start:DateTime64(6, 'UTC')}, {after:UUID})
    AND r.attributes[{attribute:String}] != ''
    AND toString(r.request_id) NOT IN (
        SELECT s.request_id FROM scores AS s
        WHERE s.project_id = {project:UUID} AND s.ts >= {start:DateTime64(6, 'UTC')}
            AND s.evaluator_type = {evaluator:String} AND s.request_id IN (
                SELECT toString(o.request_id) FROM requests AS o
                WHERE o.project_id = {project:UUID} AND o.ts >= {start:DateTime64(6, 'UTC')}
                    AND o.ts <= {end:DateTime64(6, 'UTC')} AND o.attributes[{attribute:String}] != ''
            )
    )
ORDER BY r.ts, r.request_id LIMIT {limit:UInt64}
"""


def unscored_requests(
    project_id: UUID, attribute: str, evaluator: str, *, start: datetime, end: datetime
) -> Iterator[list[Unscored]]:
    """Yields chunks of the requests without such a score, made between `start` and `end`, oldest first.

    Raises AnalyticsUnavailableError and AnalyticsLimitError.
    """
    after = UUID(int=0)
    while True:
        rows = client.query(
            _SQL,
            {
                "project": project_id,
                "attribute": attribute,
                "evaluator": evaluator,
                "start": start,
                "end": end,
                "after": after,
                "limit": _ROWS_AT_ONCE,
            },
            row=Unscored,
            name="scores.unscored",
        )
        if rows:
            yield rows
        if len(rows) < _ROWS_AT_ONCE:
            return
        start, after = rows[-1].ts, rows[-1].request_id
