"""Follows the request log and creates the tasks of online evaluations: it decides on the sample before any score.

An evaluation's cursor is a time of record. `visible_until` says up to when the log is complete, so each minute is read
once, after its last row, however late its rows were. The shipper could not do this: it must ship while the SQL database
is down, and a matched sample needs the minute of all hosts. Tasks and cursor are written in one transaction: a worker
that dies leaves both or none, and of two workers one finds the cursor moved.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from analytics.clickhouse.visible import visible_until
from analytics.errors import AnalyticsLimitError
from analytics.evaluators.selectors import KnownVersion, known_version
from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.models.evaluators import EvaluatorState
from analytics.models.online_evaluations import EvaluationState
from analytics.online_evaluations import reading
from analytics.online_evaluations.sampling import (
    Answered,
    Due,
    by_minute,
    is_label_due,
    matched_sample,
    minute_of,
    sample,
)
from analytics.online_evaluations.selectors import version_of
from analytics.parameters.requests import RequestParameters
from analytics.queries.request_filters import RequestFilter

logger = logging.getLogger("analytics.online_evaluations")

_MINUTE = timedelta(minutes=1)
_WINDOW = timedelta(minutes=10)
_WINDOWS_AT_ONCE = 30
_ROWS_AT_ONCE = 500
_NO_UUID = UUID(int=0)


def is_behind() -> bool:
    """Returns whether an evaluation has not sampled every minute that has ended. The log may still lack some."""
    active = OnlineEvaluation.objects.filter(state=EvaluationState.ACTIVE)
    return active.filter(sampled_until__lt=minute_of(timezone.now())).exists()


def follow_log(now: datetime | None = None) -> bool:
    """Creates the tasks of all complete minutes, by the store's clock unless `now` is given.

    Returns whether minutes are left. Raises AnalyticsUnavailableError.
    """
    active = OnlineEvaluation.objects.filter(state=EvaluationState.ACTIVE)
    rows = list(active.select_related("evaluator", "version__evaluator").order_by("sampled_until", "pk"))
    if not rows:
        return False
    until = minute_of(now or visible_until())
    # Every evaluation gets its turn.
    left = [_follow(row, until) for row in rows]
    return any(left)


def _follow(evaluation: OnlineEvaluation, until: datetime) -> bool:
    if evaluation.evaluator.state != EvaluatorState.ACTIVE:
        _advance(evaluation, until, [])
        return False
    try:
        filters = RequestParameters(data=evaluation.filter).to_filter()
    except ValidationError:
        # A parameter that a later version of this code does not know must not stop all others.
        logger.error("online_evaluation.unreadable_filter evaluation_id=%s", evaluation.pk)
        return False
    window = _WINDOW
    for _ in range(_WINDOWS_AT_ONCE):
        start = evaluation.sampled_until
        if start >= until:
            return False
        end = min(start + window, until)
        try:
            rows = _answered(evaluation, filters, start, end)
        except AnalyticsLimitError:
            rows = None
        if rows is None or len(rows) >= reading.MAX_ROWS:
            if end - start > _MINUTE:
                window = _MINUTE
                continue
            if rows is None:
                # One project with too many requests must not delay the other projects: the minute is tried again.
                logger.warning("online_evaluation.postponed evaluation_id=%s", evaluation.pk)
                return False
        if not _advance(evaluation, end, _tasks(evaluation, rows)):
            return False
    return True


def _answered(
    evaluation: OnlineEvaluation, filters: RequestFilter, start: datetime, end: datetime
) -> Sequence[Answered]:
    return reading.answered_requests(
        evaluation.project_id,
        filters,
        came_after=evaluation.active_since,
        recorded_from=start,
        recorded_until=end,
    )


def _tasks(evaluation: OnlineEvaluation, rows: Sequence[Answered]) -> list[EvaluationTask]:
    if not rows:
        return []
    version = known_version(version_of(evaluation))
    tasks = []
    for minute, block in by_minute(rows):
        tasks += [_task(evaluation, version, minute + _MINUTE, due) for due in _sampled(evaluation, block)]
    return tasks


def _sampled(evaluation: OnlineEvaluation, block: Sequence[Answered]) -> list[Due]:
    evaluator_id, rate = evaluation.evaluator_id, evaluation.rate
    if evaluation.matched:
        return matched_sample(block, evaluator_id=evaluator_id, rate=rate)
    return sample(block, evaluation_id=evaluation.pk, evaluator_id=evaluator_id, rate=rate)


def _task(evaluation: OnlineEvaluation, version: KnownVersion, minute_end: datetime, due: Due) -> EvaluationTask:
    answered, waits, share = due.answered, version.definition.waits, evaluation.label_share
    unit = answered.rollout_id if evaluation.matched else evaluation.pk
    label_due = is_label_due(unit, evaluation.evaluator_id, answered.request_id, share)
    return EvaluationTask(
        project_id=evaluation.project_id,
        evaluation=evaluation,
        version_id=version.version_id,
        request_id=answered.request_id,
        requested_at=answered.ts,
        prompt_config_id=_given(answered.prompt_config_id),
        prompt_version=answered.prompt_version,
        rollout_id=_given(answered.rollout_id),
        rollout_stage=answered.rollout_stage,
        variant=answered.variant,
        due_at=minute_end + waits,
        not_before=minute_end + waits if waits else None,
        position=due.position,
        label_due=label_due,
        label_share=share,
    )


def _given(identifier: UUID) -> UUID | None:
    return None if identifier == _NO_UUID else identifier


def _advance(evaluation: OnlineEvaluation, end: datetime, tasks: Sequence[EvaluationTask]) -> bool:
    """Writes the tasks and moves the cursor atomically.

    Returns False if another worker moved the cursor, or the evaluation was paused.
    """
    as_read = OnlineEvaluation.objects.filter(
        pk=evaluation.pk, sampled_until=evaluation.sampled_until, state=EvaluationState.ACTIVE
    )
    with transaction.atomic():
        if not as_read.update(sampled_until=end):
            return False
        # The first minute after a pause is looked at once more: what it had due already stays as it is.
        EvaluationTask.objects.bulk_create(tasks, ignore_conflicts=True, batch_size=_ROWS_AT_ONCE)
    evaluation.sampled_until = end
    if tasks:
        logger.info("online_evaluation.sampled evaluation_id=%s tasks=%d", evaluation.pk, len(tasks))
    return True
