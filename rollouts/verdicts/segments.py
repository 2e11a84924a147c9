from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID

from django.conf.locale import LANG_INFO

from analytics.errors import AnalyticsLimitError
from analytics.queries.variants import BASELINE, TARGET
from analytics.queries.variants.segments import ALL, segment_minutes
from analytics.queries.variants.segments import SegmentMinute as Row
from core.models import ApiKey
from rollouts.allocation import AllocationType
from rollouts.evaluation import from_json
from rollouts.evaluation.segments import (
    Segment,
    SegmentArm,
    SegmentCounts,
    SegmentMinute,
    SegmentState,
    advance_segments,
    initial_segments,
    named_segments,
)
from rollouts.models import Rollout, RolloutStage
from rollouts.verdicts.policies import policy_of
from rollouts.verdicts.recorded import Reading

logger = logging.getLogger("rollouts")


def stored_segments(rollout: Rollout) -> SegmentState:
    if rollout.evaluation.segments is not None:
        return from_json(SegmentState, rollout.evaluation.segments)
    return initial_segments(policy_of(rollout), [stage.weight for stage in rollout.stages.all()])


def segments_after(rollout: Rollout, stages: Mapping[int, RolloutStage], reading: Reading) -> SegmentState:
    state = stored_segments(rollout)
    if not reading.minutes:
        return state
    sticky = rollout.allocation_type != AllocationType.RANDOM
    before = [0, *(stages[number].weight for number in sorted(stages))][: len(stages)] if sticky else None
    try:
        found = segment_minutes(reading.rows, weights_before=before)
    except AnalyticsLimitError:
        # The verdict does not need them, and waits for nothing that only warns.
        logger.warning("rollout.segments_skipped rollout_id=%s minutes=%d", rollout.pk, len(reading.minutes))
        found = []
    counts: dict[tuple[int, int], list[SegmentCounts]] = {}
    counted: dict[tuple[int, int], int] = {}
    for row in found:
        if row.dimension == ALL:
            counted[row.minute, row.stage] = row.target_requests + row.baseline_requests
        else:
            counts.setdefault((row.minute, row.stage), []).append(_counts(row))
    for minute in reading.minutes:
        place, requests = (minute.minute, minute.stage), minute.target.requests + minute.baseline.requests
        then = SegmentMinute(minute.stage, requests, counts.get(place, ()), counted.get(place, 0))
        state = advance_segments(state, then)
    return state


def log_named(rollout: Rollout, before: Mapping[str, Any] | None, after: SegmentState) -> None:
    known = set() if before is None else {one.key for one in named_segments(from_json(SegmentState, before))}
    for one in named_segments(after):
        if one.key not in known:
            logger.warning(
                "rollout.segment_named project_id=%s rollout_id=%s dimension=%s",
                rollout.project_id,
                rollout.pk,
                one.dimension,
            )


def named_in(project_id: UUID, state: SegmentState) -> list[str]:
    named = named_segments(state)
    names = key_names(project_id, named)
    return [f"{one.dimension} {label_of(one, names)}" for one in named]


def key_names(project_id: UUID, segments: Sequence[Segment]) -> Mapping[str, str]:
    ids = [int(one.value) for one in segments if one.dimension == "key"]
    rows = ApiKey.objects.filter(project_id=project_id, pk__in=ids).values_list("pk", "name") if ids else ()
    return {str(pk): name for pk, name in rows}


def label_of(segment: Segment, names: Mapping[str, str]) -> str:
    match segment.dimension:
        case "key":
            return names.get(segment.value, f"{segment.value} (deleted)")
        case "language":
            info = LANG_INFO.get(segment.value, {})
            return str(info.get("name", segment.value))
        case "length":
            lower, _, upper = segment.value.partition("-")
            return f"{int(lower):,} to {int(upper):,} tokens" if upper else f"{int(lower):,} tokens or more"
        case _:
            return segment.value


def _counts(row: Row) -> SegmentCounts:
    arms = (
        SegmentArm(**{one.name: getattr(row, f"{arm}_{one.name}") for one in fields(SegmentArm)})
        for arm in (TARGET, BASELINE)
    )
    return SegmentCounts(row.dimension, row.value, row.allocated, *arms)
