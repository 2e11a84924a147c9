"""Target and baseline side by side: their totals in the request log, and the figures of the evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from analytics.errors import AnalyticsLimitError
from analytics.queries.variants import BASELINE, TARGET, ArmTotals, arm_totals
from rollouts.comparison.signals import signals_of
from rollouts.evaluation import UnknownFormulaError
from rollouts.forecasts.outlook import Outlook, outlook
from rollouts.models import Rollout
from rollouts.open_requests.lists import open_requests
from rollouts.states import Status
from rollouts.verdicts.evaluate import elapsed_minutes
from rollouts.verdicts.figures import check_formula, figures_before_any

# Requests from before a pause may still be open.
_SERVING = frozenset({Status.RUNNING.value, Status.PAUSED.value})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of both arms. `figures` are those of the latest verdict (see `verdicts.figures`), reached at
    `decided_at`; the totals are current and cover every stage. `open_requests`, by arm, have no first output yet;
    `outlook` is None unless the rollout is running, and `signals` where they take more than a query may."""

    target: ArmTotals
    baseline: ArmTotals
    figures: Mapping[str, Any]
    decided_at: datetime | None
    open_requests: Mapping[str, int]
    outlook: Outlook | None
    signals: Mapping[str, Any] | None


def compare(rollout: Rollout) -> Comparison:
    """Returns the comparison. Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    totals = totals_of(rollout)
    evaluation = rollout.evaluation
    figures = latest_figures(rollout)
    return Comparison(
        target=totals[TARGET],
        baseline=totals[BASELINE],
        figures=figures,
        decided_at=evaluation.decided_at,
        open_requests=open_by_arm(rollout),
        outlook=present_outlook(rollout, figures),
        signals=_signals(rollout),
    )


def _signals(rollout: Rollout) -> Mapping[str, Any] | None:
    """Returns what users did. It decides nothing, so that the other figures do not wait for a log that is too large."""
    try:
        return signals_of(rollout)
    except AnalyticsLimitError:
        return None


def latest_figures(rollout: Rollout) -> Mapping[str, Any]:
    """Returns the figures of the latest verdict. Without one, or with one of another formula, nothing is known."""
    try:
        check_formula(rollout)
    except UnknownFormulaError as error:
        return figures_before_any(rollout, str(error))
    verdict: dict[str, Any] = rollout.evaluation.verdict
    return verdict if rollout.evaluation.decided_at else figures_before_any(rollout)


def open_by_arm(rollout: Rollout) -> Mapping[str, int]:
    """Returns by arm the requests that were allocated a while ago and have no first output, as far as Redis knows;
    at most 1,000."""
    found = open_requests(rollout.pk) if rollout.status in _SERVING else []
    return {arm: sum(one.variant == arm for one in found) for arm in (TARGET, BASELINE)}


def present_outlook(rollout: Rollout, figures: Mapping[str, Any]) -> Outlook | None:
    return outlook(rollout, figures, elapsed_minutes=elapsed_minutes(rollout, timezone.now()))


def totals_of(rollout: Rollout) -> Mapping[str, ArmTotals]:
    """Returns the totals by arm up to now. Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    # The range is wider by a minute, because requests may have arrived before the start was stored or after the end.
    start = (rollout.started_at or rollout.created_at) - timedelta(minutes=1)
    end = (rollout.ended_at or timezone.now()) + timedelta(minutes=1)
    return arm_totals(rollout.project_id, rollout.pk, start, end)
