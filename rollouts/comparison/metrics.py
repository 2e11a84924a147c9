from __future__ import annotations

from collections.abc import Mapping
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


def signals_unless_too_many(rollout: Rollout) -> Mapping[str, Any] | None:
    """Returns None if the log is too large for one query: signals decide nothing, so other figures do not wait for
    them. Raises AnalyticsUnavailableError."""
    try:
        return signals_of(rollout)
    except AnalyticsLimitError:
        return None


def latest_figures(rollout: Rollout) -> Mapping[str, Any]:
    """Returns the figures of the latest verdict; empty ones without a verdict or with one of another formula."""
    try:
        check_formula(rollout)
    except UnknownFormulaError as error:
        return figures_before_any(rollout, str(error))
    verdict: dict[str, Any] = rollout.evaluation.verdict
    return verdict if rollout.evaluation.decided_at else figures_before_any(rollout)


def open_by_arm(rollout: Rollout) -> Mapping[str, int]:
    """Returns by arm the requests allocated a while ago that have no first output, as far as Redis knows; at most
    1,000."""
    found = open_requests(rollout.pk) if rollout.status in _SERVING else []
    return {arm: sum(one.variant == arm for one in found) for arm in (TARGET, BASELINE)}


def present_outlook(rollout: Rollout, figures: Mapping[str, Any]) -> Outlook | None:
    return outlook(rollout, figures, elapsed_minutes=elapsed_minutes(rollout, timezone.now()))


def totals_of(rollout: Rollout) -> Mapping[str, ArmTotals]:
    return arm_totals(rollout.project_id, rollout.pk, *rollout.requests_between(timezone.now()))
