"""The Celery tasks of analytics."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from analytics.deletion.services import finish_due
from analytics.deletion.vocabulary import forget_all_words
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError, RepairBusyError
from analytics.online_evaluations.follow import follow_log
from analytics.reconciliation.services import reconcile
from analytics.reviews.due_labels import fill_queues
from analytics.scores.sync.announcement import TASK
from analytics.scores.sync.run import copy_due

logger = logging.getLogger("analytics.score_sync")

_NIGHTLY_DAYS = 4


@shared_task(name=TASK)
def copy_scores() -> None:
    """Copies due scores and feedback to ClickHouse, after each change and periodically. It may run repeatedly."""
    try:
        copy_due()
    except (AnalyticsUnavailableError, AnalyticsLimitError) as error:
        logger.warning("copy.postponed error=%s", type(error).__name__)


@shared_task(name="analytics.reconcile_rollups")
def reconcile_rollups() -> None:
    """Reconciles the latest days once a night; `manage.py reconcile_rollups` reconciles older ones. Words of deleted
    texts go as well."""
    try:
        forget_all_words()
        reconcile(days=_NIGHTLY_DAYS)
    except (AnalyticsUnavailableError, AnalyticsLimitError, RepairBusyError) as error:
        # A failed run leaves unknown whether figures differ; the next night compares the same days again.
        logging.getLogger("analytics.reconciliation").error("rollups.not_reconciled error=%s", type(error).__name__)


@shared_task(name="analytics.finish_deletions")
def finish_deletions() -> None:
    """Continues unfinished deletions, and deletes records that arrived late. It may run repeatedly."""
    finish_due()


@shared_task(name="analytics.fill_label_queues")
def fill_label_queues() -> None:
    """Adds the labels that came due to their open review queues, twice a minute. Repeatable: an answer is in one open
    queue at most."""
    fill_queues(timezone.now())


@shared_task(name="analytics.sample_answers")
def sample_answers() -> None:
    """Makes the tasks of online evaluations for the minutes of the request log that are complete, and calls itself
    again while minutes are left. Repeatable: cursor and tasks are written together."""
    try:
        if follow_log():
            sample_answers.delay()
    except AnalyticsUnavailableError as error:
        logging.getLogger("analytics.online_evaluations").warning("sample.postponed error=%s", type(error).__name__)
