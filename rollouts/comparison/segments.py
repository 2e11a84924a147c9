from __future__ import annotations

from typing import Any

from core.wire.shown import shown_as
from rollouts.evaluation.segments import (
    Segment,
    SegmentArm,
    SegmentState,
    evidence_needed,
    named_segments,
    segment_evidence,
)
from rollouts.models import Rollout
from rollouts.shapes import RolloutSegment
from rollouts.verdicts.segments import key_names, label_of, stored_segments


def segments_of(rollout: Rollout) -> list[RolloutSegment]:
    state = stored_segments(rollout)
    names = key_names(rollout.project_id, state.segments)
    threshold = evidence_needed(len(named_segments(state)))
    return [
        shown_as(
            RolloutSegment,
            one,
            label=label_of(one, names),
            target=_arm(one.all_target),
            baseline=_arm(one.all_baseline),
            evidence=segment_evidence(state, one),
            evidence_threshold=threshold,
        )
        for one in _in_order(state)
    ]


def _in_order(state: SegmentState) -> list[Segment]:
    return sorted(state.segments, key=lambda one: (not one.named, -segment_evidence(state, one), one.key))


def _arm(arm: SegmentArm) -> dict[str, Any]:
    return {
        "request_count": arm.requests,
        "unanswered_count": arm.unanswered,
        "unanswered_rate": arm.unanswered / arm.requests if arm.requests else 0.0,
        "contract_violation_count": arm.contract,
        "empty_count": arm.empty,
    }
