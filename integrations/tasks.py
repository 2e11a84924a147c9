from __future__ import annotations

import logging

from celery import shared_task

from core.fleet.schedule import sent_if
from integrations.errors import SyncRunningError
from integrations.model_lists.refresh import is_any_due, refresh_lists
from integrations.models import PriceSyncLog
from integrations.pricing.sync import sync_prices

logger = logging.getLogger("integrations.pricing")


@shared_task(name="integrations.sync_pricing")
def sync_pricing() -> None:
    try:
        sync_prices(trigger=PriceSyncLog.Trigger.SCHEDULE)
    except SyncRunningError:
        logger.info("sync.left_to_the_running_one")


@shared_task(name="integrations.refresh_model_lists")
@sent_if(is_any_due)
def refresh_model_lists() -> None:
    refresh_lists()
