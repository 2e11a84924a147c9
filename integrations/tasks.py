"""The Celery tasks of the integrations."""

from __future__ import annotations

import logging

from celery import shared_task

from integrations.errors import SyncRunningError
from integrations.models import PriceSyncLog
from integrations.pricing.sync import sync_prices

logger = logging.getLogger("integrations.pricing")


@shared_task(name="integrations.sync_pricing")
def sync_pricing() -> None:
    """Syncs the prices on Celery beat's schedule. It is safe to repeat, since the next run fetches everything that a
    failed run could not."""
    try:
        sync_prices(trigger=PriceSyncLog.Trigger.SCHEDULE)
    except SyncRunningError:
        logger.info("sync.left_to_the_running_one")
