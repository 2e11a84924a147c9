"""The panel of a rollout's segments: where the target is worse for a part of the traffic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from core.ui.pages import Visit
from rollouts.comparison.segments import segments_of
from rollouts.evaluation.words import odds
from rollouts.selectors import get_rollout

_MAX_SHOWN = 20


def segments(visit: Visit, rollout_id: UUID) -> Mapping[str, Any]:
    found = segments_of(get_rollout(visit.project.pk, rollout_id))
    return {
        "rows": [_row(one) for one in found[:_MAX_SHOWN]],
        "count": len(found),
        "more": len(found) - _MAX_SHOWN,
        "named": [f"{_dimension(one)} {one['label']}" for one in found if one["named"]],
    }


def _row(one: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "dimension": _dimension(one).capitalize(),
        "label": one["label"],
        "named": one["named"],
        "target": _arm(one["target"]),
        "baseline": _arm(one["baseline"]),
        "evidence": odds(one["evidence"]),
        "threshold": odds(one["evidence_threshold"]),
    }


def _arm(arm: Mapping[str, Any]) -> str:
    broken = arm["contract_violation_count"]
    text = f"{arm['unanswered_count']:,} of {arm['request_count']:,}"
    return f"{text}, {broken:,} broke the schema" if broken else text


def _dimension(one: Mapping[str, Any]) -> str:
    return str(one["dimension"]).removeprefix("metadata.")
