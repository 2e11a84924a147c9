"""Counts a rollout's requests by segment: by facts that were known before a version was chosen.

The dimensions are `language`, `length` (the tokens of the client's own request, by powers of four), `model` (the one
that the client asked for), `key` (its id) and each name of the keys' metadata, as `metadata.team`. `all` has one value,
to which every request belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.clickhouse import client
from analytics.queries.variants.by_record import UP_TO, WITHIN, Recorded
from analytics.queries.variants.outcomes import BASELINE, COUNTS, FRESH, REQUEST, TARGET

LENGTHS = (256, 1024, 4096, 16384, 65536)
"""The upper limits of the lengths in tokens; what is longer than all is a length of its own."""
ALL = "all"
MAX_VALUES = 50
"""The number of values of one dimension that a minute has, the most frequent ones."""


@dataclass(frozen=True)
class SegmentMinute:
    """One segment of one stage in one minute, which is Unix time divided by 60.

    `allocated` are the requests of both arms, whatever their outcome. The others are those that count, by arm, as in
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
    target_empty: int
    baseline_requests: int
    baseline_unanswered: int
    baseline_answered: int
    baseline_contract: int
    baseline_empty: int


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
_FLAGS = {name: COUNTS[name] for name in ("requests", "unanswered", "answered", "contract", "empty")}
_SUMS = ", ".join(
    f"countIf(variant = '{arm}' AND is_{name}) AS {arm}_{name}" for arm in (TARGET, BASELINE) for name in _FLAGS
)
# The user's first request of the stage that counts, if it was recorded in this window.
_FIRST_OF_USER = f"""{REQUEST} AND r.request_id IN (
    SELECT argMin(r.request_id, (r.recorded_at, r.ts, r.request_id))
    FROM requests AS r
    WHERE {UP_TO} AND {REQUEST}
        AND r.alloc_unit % 10000 >= 100 * arrayElement({{weights_before:Array(UInt16)}}, r.rollout_stage)
        AND r.alloc_unit IN (SELECT r.alloc_unit FROM requests AS r WHERE {WITHIN})
    GROUP BY r.alloc_unit, r.rollout_stage
    HAVING min(r.recorded_at) >= {{start:DateTime64(3, 'UTC')}}
)"""


def _sql(condition: str) -> str:
    return f"""
SELECT
    intDiv(toUnixTimestamp(recorded_at), 60) AS minute, stage, segment.1 AS dimension, segment.2 AS value,
    count() AS allocated, {_SUMS}
FROM (
    SELECT
        r.recorded_at AS recorded_at, r.rollout_stage AS stage, toString(r.variant) AS variant,
        {", ".join(f"{flag} AS is_{name}" for name, flag in _FLAGS.items())},
        arrayJoin({_SEGMENTS}) AS segment
    FROM requests AS r
    WHERE {WITHIN} AND {condition}
)
GROUP BY minute, stage, dimension, value
ORDER BY minute, stage, dimension, allocated DESC, value
LIMIT {MAX_VALUES} BY minute, stage, dimension
"""


_BY_REQUEST, _BY_USER = _sql("true"), _sql(_FIRST_OF_USER)


def segment_minutes(rows: Recorded, *, weights_before: Sequence[int] | None) -> list[SegmentMinute]:
    """The segments by minute, stage and dimension, the most frequent values first.

    `weights_before` are the weights before each stage, the first of which is 0, of sticky allocation; None for random
    allocation. With sticky allocation a user counts once a stage, by the first request, unless the user was in the
    target before the stage.
    """
    params = rows.parameters()
    if weights_before is None:
        return client.query(_BY_REQUEST, params, row=SegmentMinute, name="variants.segments", fresh=FRESH)
    params["weights_before"] = list(weights_before)
    return client.query(_BY_USER, params, row=SegmentMinute, name="variants.segments_by_user", fresh=FRESH)
