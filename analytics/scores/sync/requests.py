from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from analytics.clickhouse import client
from analytics.errors import AnalyticsLimitError

# A request's id and its row both contain its time; the two may differ by this much.
_SLACK = timedelta(minutes=10)
_TIME_SHIFT = 80
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# An id that a client made up may have any time in it; ClickHouse knows those between 1900 and 2299.
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ScoredRequest:
    request_id: UUID
    provider: str
    model: str
    prompt_config_id: UUID
    prompt_version: int
    rollout_id: UUID
    variant: str
    session_id: str = ""
    ts: datetime = _EPOCH
    drop_date: date = date(1970, 1, 1)
    source: str = ""
    outcome: str = ""


_SQL = """
SELECT r.request_id, r.provider, r.model, r.prompt_config_id, r.prompt_version, r.rollout_id, r.variant,
    r.session_id, r.ts, r.drop_date, r.source, r.outcome
FROM requests AS r
WHERE r.project_id = {project:UUID} AND r.request_id IN {ids:Array(UUID)}
    AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}
LIMIT 1 BY r.request_id
"""


def find_requests(project_id: UUID, request_ids: Iterable[UUID]) -> Mapping[UUID, ScoredRequest]:
    """`request_ids` are UUIDv7. Leaves out unknown ones.

    Raises AnalyticsUnavailableError and AnalyticsLimitError.
    """
    ids = sorted(set(request_ids))
    if not ids:
        return {}
    params = {
        "project": project_id,
        "ids": [str(request_id) for request_id in ids],
        "start": _made_at(ids[0]) - _SLACK,
        "end": _made_at(ids[-1]) + _SLACK,
    }
    rows = client.query(_SQL, params, row=ScoredRequest, name="scores.requests")
    return {row.request_id: row for row in rows}


def _made_at(request_id: UUID) -> datetime:
    """Returns the time in a UUIDv7 (RFC 9562, 5.7), limited to the times that a query parameter can have."""
    latest = (_LATEST - _EPOCH) // timedelta(milliseconds=1)
    return _EPOCH + timedelta(milliseconds=min(request_id.int >> _TIME_SHIFT, latest))


logger = logging.getLogger("analytics.score_sync")

# Pairs of an age and a pause: while the request of a row up to this age is unknown, the row is looked at again after
# the pause.
_LOOKS = (
    (timedelta(minutes=2), timedelta(seconds=20)),
    (timedelta(minutes=15), timedelta(minutes=2)),
    (timedelta(hours=2), timedelta(minutes=15)),
    (timedelta(days=2), timedelta(hours=4)),
)
FIRST_PAUSE = _LOOKS[0][1]
LONGEST_WAY = _LOOKS[-1][0]
"""For so long a request may be on its way to the store: while that was away, its record waited in a spool."""


def requests_of(named: Mapping[UUID, tuple[UUID, UUID | None]]) -> Mapping[UUID, ScoredRequest]:
    """Returns the stored requests by the keys of the rows. `named` has project and request of each, None for an id that
    is not the gateway's."""
    request_ids: defaultdict[UUID, dict[UUID, UUID]] = defaultdict(dict)
    for key, (project_id, request_id) in named.items():
        if request_id is not None:
            request_ids[project_id][key] = request_id
    found: dict[UUID, ScoredRequest] = {}
    for project_id, ids in request_ids.items():
        try:
            requests = find_requests(project_id, ids.values())
        except AnalyticsLimitError:
            # A row without its request is copied for now.
            logger.warning("copy.requests_not_found project_id=%s rows=%d", project_id, len(ids))
            continue
        found.update({key: requests[request_id] for key, request_id in ids.items() if request_id in requests})
    return found


def next_look(now: datetime, since: datetime) -> datetime | None:
    """Returns when to look again for the request of a row made or changed at `since`, None if it is too old to come."""
    age = now - since
    return next((now + pause for until, pause in _LOOKS if age < until), None)
