from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from analytics.clickhouse import client
from analytics.online_evaluations.sampling import Answered
from analytics.queries import visible
from analytics.queries.request_cursor import RequestCursor, keyed
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import request_conditions
from analytics.queries.variants.outcomes import ANSWERED, FRESH, IN_ARM, OF_CLIENTS

MAX_ROWS = 200_000
"""The number of answers that are looked at in one block. Of more a part is taken, by a hash of their ids."""

"""The sources of answers that are in no sample. The answers of batches come without their requests, so that no judge
could read them."""

_CLOCKS_DIFFER_BY = timedelta(minutes=5)


@dataclass(frozen=True)
class AnswerFacts:
    request_id: UUID
    session_id: str
    finish_reason: str
    completion_tokens: int
    verdicts: str


_ANSWERED = """
SELECT r.request_id AS request_id, r.ts AS ts, r.recorded_at AS recorded_at, r.rollout_id AS rollout_id,
    r.rollout_stage AS rollout_stage, toString(r.variant) AS variant, r.prompt_config_id AS prompt_config_id,
    r.prompt_version AS prompt_version,
    {answered} AND {in_arm} AND r.variant IN ('target', 'baseline') AS is_compared
FROM requests AS r
WHERE {where} AND r.ts >= {{came_after:DateTime64(6, 'UTC')}}
    AND r.recorded_at >= {{recorded_from:DateTime64(3, 'UTC')}}
    AND r.recorded_at < {{recorded_until:DateTime64(3, 'UTC')}}
    AND r.outcome = 'success' AND r.operation = 'chat' AND {of_clients}
ORDER BY cityHash64(r.request_id), r.request_id LIMIT {{max_rows:UInt64}}
"""

_FACTS = """
SELECT r.request_id AS request_id, toString(r.session_id) AS session_id,
    toString(r.finish_reason) AS finish_reason, r.completion_tokens AS completion_tokens,
    r.attributes[{attribute:String}] AS verdicts
FROM requests AS r
WHERE r.project_id = {project:UUID} AND r.ts IN {times:Array(DateTime64(6, 'UTC'))}
    AND r.request_id IN {ids:Array(UUID)}
LIMIT 1 BY r.request_id
"""


def answered_requests(
    project_id: UUID,
    filters: RequestFilter,
    *,
    came_after: datetime,
    recorded_from: datetime,
    recorded_until: datetime,
) -> Sequence[Answered]:
    """Returns the clients' matching chat completions that were answered, recorded in this time and arrived after
    `came_after`; at most `MAX_ROWS`.

    Raises the errors of the store.
    """
    where, params = request_conditions(project_id, filters)
    sql = _ANSWERED.format(where=where, answered=ANSWERED, in_arm=IN_ARM, of_clients=OF_CLIENTS)
    given = {
        **params,
        "came_after": came_after - _CLOCKS_DIFFER_BY,
        "recorded_from": recorded_from,
        "recorded_until": recorded_until,
        "max_rows": MAX_ROWS,
    }
    return client.query(sql, given, row=Answered, name="evaluations.answered", fresh=FRESH)


def answer_facts(project_id: UUID, keys: Sequence[RequestCursor], attribute: str) -> Mapping[UUID, AnswerFacts]:
    """Leaves out hidden requests. `attribute` names the attribute of the verdicts."""
    if not keys:
        return {}
    params = {**keyed(project_id, keys), "attribute": attribute}
    found = visible.query(_FACTS, params, row=AnswerFacts, name="evaluations.facts")
    return {row.request_id: row for row in found}
