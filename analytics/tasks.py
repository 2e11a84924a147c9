"""What Celery runs."""

from __future__ import annotations

import logging

from celery import shared_task

from analytics.deletion.services import finish_due
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError, RepairBusyError
from analytics.reconciliation.services import reconcile
from analytics.score_sync.announcement import TASK
from analytics.score_sync.run import copy_due

logger = logging.getLogger("analytics.score_sync")

_NIGHTLY_DAYS = 4


@shared_task(name=TASK)
def copy_scores() -> None:
    """After each change of scores or feedback, and by beat for what could not be copied then. Repeatable."""
    try:
        copy_due()
    except (AnalyticsUnavailableError, AnalyticsLimitError) as error:
        logger.warning("copy.postponed error=%s", type(error).__name__)


@shared_task(name="analytics.reconcile_rollups")
def reconcile_rollups() -> None:
    """Once a night, the days that records may still have reached. What is older: `manage.py reconcile_rollups`."""
    try:
        reconcile(days=_NIGHTLY_DAYS)
    except (AnalyticsUnavailableError, AnalyticsLimitError, RepairBusyError) as error:
        # It is not known whether anything differs; the next night looks at the same days.
        logging.getLogger("analytics.reconciliation").error("rollups.not_reconciled error=%s", type(error).__name__)


@shared_task(name="analytics.finish_deletions")
def finish_deletions() -> None:
    """Goes on with deletions that were broken off, and looks for what arrived after they were done. Repeatable."""
    finish_due()
