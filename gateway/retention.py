"""Deletes judgements in the SQL database after their project's retention: scores, feedback, comments, items of review
queues and data sets, tasks of online evaluations and experiments. ClickHouse expires its own rows."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.utils import timezone

from analytics.datasets import erasure as datasets
from analytics.discussions.services import delete_discussions_before
from analytics.online_evaluations.services import delete_tasks_before
from analytics.reviews.services import delete_items_before
from analytics.scores.services import delete_feedback_before, delete_scores_before
from core.models import Project
from gateway.experiments.erasure import expire_items
from gateway.models import Experiment
from gateway.selectors import project_settings

logger = logging.getLogger("gateway.retention")


def expire_judgements(now: datetime | None = None) -> int:
    moment = now or timezone.now()
    deleted = 0
    for project_id in Project.objects.values_list("pk", flat=True):
        days = project_settings(project_id).retention_days
        # Retention counts whole UTC days, as in ClickHouse: all rows of a day expire at one moment.
        first_retained = (moment - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
        deleted += delete_scores_before(project_id, first_retained) + delete_feedback_before(project_id, first_retained)
        deleted += delete_items_before(project_id, first_retained)
        deleted += datasets.delete_items_before(project_id, first_retained)
        deleted += delete_tasks_before(project_id, first_retained)
        deleted += delete_discussions_before(project_id, first_retained)
        # Experiments hold texts of requests and answers: those of a request go with it, all others with the experiment.
        deleted += expire_items(project_id, first_retained)
        deleted += Experiment.objects.for_project(project_id).filter(created_at__lt=first_retained).delete()[0]
    if deleted:
        logger.info("judgements.expired count=%d", deleted)
    return deleted
