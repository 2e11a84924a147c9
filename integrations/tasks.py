"""The Celery tasks of the integrations."""

from __future__ import annotations

import logging

from celery import shared_task

from integrations.errors import SyncRunningError
from integrations.model_lists.refresh import refresh_lists
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


@shared_task(name="integrations.refresh_model_lists")
def refresh_model_lists() -> None:
    """Reads the providers' lists of models that are due. It is safe to repeat: a list that could not be read stays as
    it was, and is due again later."""
    refresh_lists()
