"""Counts the requests of a rollout by segments: by what was known of a request before a version was given to it.

The dimensions are `language`, `length` (the tokens of the client's own request, by powers of four), `model` (the one
that the client asked for), `key` (its id) and each name of the keys' metadata, as `metadata.team`. `all` has one value,
to which every request belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.clickhouse import client
from analytics.queries.variants.by_record import UP_TO, WITHIN, Recorded
from analytics.queries.variants.outcomes import ANSWERED, BASELINE, CONTRACT, REQUEST, TARGET, UNANSWERED

LENGTHS = (256, 1024, 4096, 16384, 65536)
"""The upper limits of the lengths in tokens; what is longer than all is a length of its own."""
ALL = "all"
MAX_VALUES = 50
"""The number of values of one dimension that a minute has, the most frequent ones."""


@dataclass(frozen=True)
class SegmentMinute:
    """One segment of one stage in one minute, which is Unix time divided by 60.

    `allocated` are the requests of both arms, whatever became of them. The others are those that count, by arm, as in
    `by_record.RecordedMinute`.
    """

    minute: int
    stage: int
    dimension: str
    value: str
    allocated: int
    target_requests: int
    target_unanswered: int
    target_answered: int
    target_contract: int
    baseline_requests: int
    baseline_unanswered: int
    baseline_answered: int
    baseline_contract: int


def _length() -> str:
    names, lower = [], 1
    for upper in LENGTHS:
        names += [f"r.client_tokens <= {upper}", f"'{lower}-{upper}'"]
        lower = upper + 1
    return f"multiIf(r.client_tokens = 0, '', {', '.join(names)}, '{lower}-')"


_SEGMENTS = f"""arrayFilter(one -> one.2 != '', arrayConcat(
    [
        ('{ALL}', '{ALL}'), ('language', toString(r.language)), ('length', {_length()}),
        ('model', toString(r.requested_model)), ('key', if(r.api_key_id = 0, '', toString(r.api_key_id)))
    ],
    arrayFilter(
        one -> startsWith(one.1, 'metadata.'),
        arrayMap((name, value) -> (toString(name), value), mapKeys(r.attributes), mapValues(r.attributes))
    )
))"""
# Where the question was in the cache of either arm, the arms do not see the same requests.
_COMPARED = f"({REQUEST} AND NOT r.question_cached)"
_FLAGS = {
    "requests": _COMPARED,
    "unanswered": f"({UNANSWERED} AND NOT r.question_cached)",
    "answered": f"({ANSWERED} AND NOT r.question_cached)",
    "contract": f"({CONTRACT} AND NOT r.question_cached)",
}
_SUMS = ", ".join(
    f"countIf(variant = '{arm}' AND is_{name}) AS {arm}_{name}" for arm in (TARGET, BASELINE) for name in _FLAGS
)
_GROUPS = f"""
GROUP BY minute, stage, dimension, value
ORDER BY minute, stage, dimension, allocated DESC, value
LIMIT {MAX_VALUES} BY minute, stage, dimension
"""

_BY_REQUEST = f"""
SELECT
    intDiv(toUnixTimestamp(recorded_at), 60) AS minute, stage, segment.1 AS dimension, segment.2 AS value,
    count() AS allocated, {_SUMS}
FROM (
    SELECT
        r.recorded_at AS recorded_at, r.rollout_stage AS stage, toString(r.variant) AS variant,
        {", ".join(f"{flag} AS is_{name}" for name, flag in _FLAGS.items())},
        arrayJoin({_SEGMENTS}) AS segment
    FROM requests AS r
    WHERE {WITHIN}
)
{_GROUPS}
"""

_BY_USER = f"""
SELECT
    intDiv(toUnixTimestamp(first_at), 60) AS minute, stage, dimension, value, count() AS allocated, {_SUMS}
FROM (
    SELECT
        stage, variant, segment.1 AS dimension, segment.2 AS value, min(recorded_at) AS first_at,
        {", ".join(f"argMin(is_{name}, (recorded_at, ts, request_id)) AS is_{name}" for name in _FLAGS)}
    FROM (
        SELECT
            r.alloc_unit AS unit, r.recorded_at AS recorded_at, r.ts AS ts, r.request_id AS request_id,
            r.rollout_stage AS stage, toString(r.variant) AS variant,
            {", ".join(f"{flag} AS is_{name}" for name, flag in _FLAGS.items())},
            arrayJoin({_SEGMENTS}) AS segment
        FROM requests AS r
        WHERE {UP_TO} AND {_COMPARED}
            AND r.alloc_unit % 10000 >= 100 * arrayElement({{weights_before:Array(UInt16)}}, r.rollout_stage)
            AND (r.alloc_unit, r.rollout_stage) IN (
                SELECT r.alloc_unit, r.rollout_stage FROM requests AS r WHERE {WITHIN}
            )
    )
    GROUP BY unit, stage, variant, dimension, value
    HAVING first_at >= {{start:DateTime64(3, 'UTC')}}
)
{_GROUPS}
"""


def segment_minutes(rows: Recorded, *, weights_before: Sequence[int] | None) -> list[SegmentMinute]:
    """Returns the segments by minute, stage and dimension, the most frequent values first.

    `weights_before` are the weights before each stage, the first of which is 0, of sticky allocation; None for random
    allocation. With sticky allocation a user counts once a stage and segment, by the first request, and one who was in
    the target before the stage does not.
    """
    params = rows.parameters()
    if weights_before is None:
        return client.query(_BY_REQUEST, params, row=SegmentMinute, name="variants.segments")
    params["weights_before"] = list(weights_before)
    return client.query(_BY_USER, params, row=SegmentMinute, name="variants.segments_by_user")
