"""The latest requests of sessions and users, which outcomes of these are scores of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from analytics.queries import visible
from analytics.queries.variants.outcomes import OF_CLIENTS

UNITS = ("session_id", "user_id")
"""The columns of the request log by which a score may name its request."""
OUTCOME_COMES_WITHIN = timedelta(days=14)
"""An outcome that comes later after its request does not count."""


@dataclass(frozen=True)
class _Latest:
    unit: str
    request_id: UUID


_LATEST: Mapping[str, str] = {
    column: f"""
SELECT r.{column} AS unit, argMax(r.request_id, r.ts) AS request_id FROM requests AS r
WHERE r.project_id = {{project:UUID}} AND r.ts >= {{start:DateTime64(6, 'UTC')}}
    AND r.{column} IN {{units:Array(String)}} AND {OF_CLIENTS}
GROUP BY unit
"""
    for column in UNITS
}


def latest_requests(project_id: UUID, column: str, units: Collection[str]) -> Mapping[str, str]:
    """Returns the ids of the latest stored requests of these sessions or users, by `column` (see UNITS). Raises the
    errors of the store."""
    if not units:
        return {}
    params = {"project": project_id, "units": sorted(units), "start": timezone.now() - OUTCOME_COMES_WITHIN}
    found = visible.query(_LATEST[column], params, row=_Latest, name="scores.latest_requests")
    return {row.unit: str(row.request_id) for row in found}
