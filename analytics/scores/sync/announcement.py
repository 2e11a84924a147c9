from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import OperationalError

logger = logging.getLogger("analytics.score_sync")

TASK = "analytics.copy_scores"
# The first of these tasks copies everything, so later ones may expire while a worker is away. Beat sends the task
# periodically as well.
_EXPIRES_SECONDS = 60


def announce() -> None:
    """Asks the worker to copy now. Without a broker the scheduled copy does it, so failures are ignored."""
    try:
        current_app.send_task(TASK, retry=False, expires=_EXPIRES_SECONDS)
    except OperationalError as error:
        logger.warning("copy.postponed error=%s", type(error).__name__)
