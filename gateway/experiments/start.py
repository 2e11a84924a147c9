from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import KombuError

logger = logging.getLogger("gateway.experiments")

TASK = "gateway.judge"


def call_worker() -> None:
    """If no worker can be called, one finds the experiment within seconds."""
    try:
        current_app.send_task(TASK, retry=False, expires=60)
    except (KombuError, OSError) as error:
        logger.warning("experiment.not_announced error=%s", type(error).__name__)
