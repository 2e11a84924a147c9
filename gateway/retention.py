"""What the SQL database keeps of requests, for as long as each project keeps those: scores and feedback.

In ClickHouse rows say themselves when they expire.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.utils import timezone

from analytics.services import delete_feedback_before, delete_scores_before
from core.models import Project
from gateway.selectors import project_settings

logger = logging.getLogger("gateway.retention")


def expire_judgements(now: datetime | None = None) -> int:
    """Deletes scores and feedback that are older than their project keeps anything; returns how many."""
    moment = now or timezone.now()
    deleted = 0
    for project_id in Project.objects.values_list("pk", flat=True):
        days = project_settings(project_id).logging.retention_days
        # Whole UTC days, as in ClickHouse: what was made on a day expires at one moment.
        first_kept = (moment - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
        deleted += delete_scores_before(project_id, first_kept) + delete_feedback_before(project_id, first_kept)
    if deleted:
        logger.info("judgements.expired count=%d", deleted)
    return deleted
