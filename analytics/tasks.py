from __future__ import annotations

import logging

from celery import shared_task

from analytics.deletion.services import finish_due, is_any_due
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError, RepairBusyError
from analytics.reconciliation.services import reconcile
from analytics.scores.sync.announcement import TASK
from analytics.scores.sync.run import copy_due
from core.fleet.schedule import sent_if

logger = logging.getLogger("analytics.score_sync")

_NIGHTLY_DAYS = 4


@shared_task(name=TASK)
def copy_scores() -> None:
    """Runs after each change and periodically. Idempotent."""
    try:
        copy_due()
    except (AnalyticsUnavailableError, AnalyticsLimitError) as error:
        logger.warning("copy.postponed error=%s", type(error).__name__)


@shared_task(name="analytics.reconcile_rollups")
def reconcile_rollups() -> None:
    """Runs every night for the latest days.

    `manage.py reconcile_rollups` reconciles older days.
    """
    try:
        reconcile(days=_NIGHTLY_DAYS)
    except (AnalyticsUnavailableError, AnalyticsLimitError, RepairBusyError) as error:
        # A failed run leaves unknown whether figures differ; the next night compares the same days again.
        logging.getLogger("analytics.reconciliation").error("rollups.not_reconciled error=%s", type(error).__name__)


@shared_task(name="analytics.finish_deletions")
@sent_if(is_any_due)
def finish_deletions() -> None:
    """Continues unfinished deletions, and deletes records that arrived late. Idempotent."""
    finish_due()
