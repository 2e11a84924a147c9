"""Looks for the requests of rows that are copied, and says when to look again for one that is not in the store yet."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from analytics.errors import AnalyticsLimitError
from analytics.scores.sync.requests import ScoredRequest, find_requests

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
