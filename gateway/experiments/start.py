"""Has a worker run an experiment that was just made."""

from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import KombuError

logger = logging.getLogger("gateway.experiments")

TASK = "gateway.run_experiments"


def call_worker() -> None:
    """Calls the worker of tasks. One that cannot be called now runs it with its next look, within seconds."""
    try:
        current_app.send_task(TASK, retry=False, expires=60)
    except (KombuError, OSError) as error:
        logger.warning("experiment.not_announced error=%s", type(error).__name__)
