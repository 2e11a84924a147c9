"""What Celery runs."""

from __future__ import annotations

import logging

from celery import shared_task

from analytics.copying.announcement import TASK
from analytics.copying.run import copy_due
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError

logger = logging.getLogger("analytics.copying")


@shared_task(name=TASK)
def copy_scores() -> None:
    """After each change of scores or feedback, and by beat for what could not be copied then. Repeatable."""
    try:
        copy_due()
    except (AnalyticsUnavailableError, AnalyticsLimitError) as error:
        logger.warning("copy.postponed error=%s", type(error).__name__)
