"""Target and baseline beside each other: what the request log says of them, and what the evaluation makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from analytics.queries.variants import BASELINE, TARGET, ArmTotals, arm_totals
from rollouts.figures import figures_before_any
from rollouts.models import Rollout


@dataclass(frozen=True, slots=True)
class Comparison:
    """`figures` are those of the latest verdict (see rollouts.figures), reached at `decided_at`; the totals are of now
    and of every stage."""

    target: ArmTotals
    baseline: ArmTotals
    figures: Mapping[str, Any]
    decided_at: datetime | None


def compare(rollout: Rollout) -> Comparison:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    totals = _totals(rollout)
    evaluation = rollout.evaluation
    return Comparison(
        target=totals[TARGET],
        baseline=totals[BASELINE],
        figures=evaluation.verdict if evaluation.decided_at else figures_before_any(rollout),
        decided_at=evaluation.decided_at,
    )


def _totals(rollout: Rollout) -> Mapping[str, ArmTotals]:
    # Requests of the first minute may have arrived before the start was stored; of the last, after the end.
    start = (rollout.started_at or rollout.created_at) - timedelta(minutes=1)
    end = (rollout.ended_at or timezone.now()) + timedelta(minutes=1)
    return arm_totals(rollout.project_id, rollout.pk, start, end)
