"""Gives shadows their items: answered requests of a rollout's baseline, sampled by a hash of their ids.

A shadow's cursor is a time of record. `visible_until` is the time up to which the log is complete, so each minute is
read once. Items and cursor are written in one transaction: a worker that dies leaves both or none, and the slower of
two workers finds the cursor moved. Web workers take no part.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from analytics.clickhouse.visible import visible_until
from analytics.errors import AnalyticsLimitError
from analytics.identifiers import id_hash
from analytics.online_evaluations import reading
from analytics.online_evaluations.sampling import Answered, by_minute, minute_of, sample
from analytics.queries.request_filters import RequestFilter
from gateway.experiments.evaluators import evaluators_of
from gateway.experiments.start import call_worker
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, Shadow
from gateway.shadow.selection import TARGET, Selection, select_shadowed
from gateway.tables.experiment import UNFINISHED, AnswerState

logger = logging.getLogger("gateway.shadow")

MAX_WAITING = 40
"""So many items wait for the target's answer; what is sampled meanwhile is left out, so that shadows lag behind no
traffic."""
_CLIENTS = "gateway"
_MINUTE, _WINDOW = timedelta(minutes=1), timedelta(minutes=10)


def is_behind() -> bool:
    """Returns whether a shadow has not followed every minute that has ended. The log may still lack some of them."""
    active = Shadow.objects.filter(experiment__state__in=UNFINISHED)
    return active.filter(followed_until__lt=minute_of(timezone.now())).exists()


def follow_log(now: datetime | None = None) -> bool:
    """Takes the next complete minutes, by the store's clock unless `now` is given. Returns whether minutes are left.
    Raises AnalyticsUnavailableError."""
    active = Shadow.objects.filter(experiment__state__in=UNFINISHED)
    rows = list(active.select_related("experiment").order_by("followed_until", "pk"))
    if not rows:
        return False
    until = minute_of(now or visible_until())
    # Every shadow gets its turn.
    left = [_follow(row, until) for row in rows]
    return any(left)


def _follow(shadow: Shadow, until: datetime) -> bool:
    start = shadow.followed_until
    if start >= until:
        return False
    end = min(start + _WINDOW, until)
    rows = _answered(shadow, start, end)
    if rows is None and end - start > _MINUTE:
        end = start + _MINUTE
        rows = _answered(shadow, start, end)
    if rows is None:
        # One project with too many requests must not delay the others: the minute is tried again.
        logger.warning("shadow.postponed experiment_id=%s", shadow.pk)
        return False
    sampled = _new(shadow, _sampled(shadow, rows))
    selection = select_shadowed(shadow.experiment, sampled, room=_room(shadow))
    return _advance(shadow, end, selection) and end < until


def _answered(shadow: Shadow, start: datetime, end: datetime) -> Sequence[Answered] | None:
    of_baseline = RequestFilter(
        source=_CLIENTS, prompt_config_id=shadow.prompt_config_id, prompt_version=shadow.baseline_number
    )
    try:
        return reading.answered_requests(
            shadow.experiment.project_id,
            of_baseline,
            came_after=shadow.since,
            recorded_from=start,
            recorded_until=end,
        )
    except AnalyticsLimitError:
        return None


def _sampled(shadow: Shadow, rows: Sequence[Answered]) -> list[Answered]:
    experiment = shadow.experiment
    [evaluator] = evaluators_of(experiment.evaluators)
    unit, evaluator_id = experiment.rollout_id or experiment.pk, UUID(evaluator.evaluator_id)
    found: list[Answered] = []
    for _, block in by_minute(rows):
        due = sample(block, evaluation_id=unit, evaluator_id=evaluator_id, rate=shadow.rate)
        found += [one.answered for one in due]
    return found


def _new(shadow: Shadow, sampled: Sequence[Answered]) -> list[Answered]:
    """Leaves out what was taken before: a record that came twice is one request."""
    hashes = {id_hash(str(one.request_id)): one for one in sampled}
    items = ExperimentItem.objects.filter(experiment=shadow.pk)
    # There are at most as many items as a shadow takes, and there may be far more in the sample.
    known = set(items.values_list("request_hash", flat=True))
    return [one for digest, one in hashes.items() if digest not in known]


def _room(shadow: Shadow) -> int:
    waiting = ExperimentAnswer.objects.filter(
        item__experiment=shadow.pk, candidate=TARGET, state__in=(AnswerState.PENDING, AnswerState.RUNNING)
    ).count()
    return max(min(shadow.experiment.item_limit - shadow.taken, MAX_WAITING - waiting), 0)


def _advance(shadow: Shadow, end: datetime, selection: Selection) -> bool:
    """Writes the items and moves the cursor, both or none. Returns False if another worker has moved it, or the shadow
    has ended."""
    with transaction.atomic():
        # Locked as by whoever ends it.
        own = Experiment.objects.select_for_update().filter(pk=shadow.pk, state__in=UNFINISHED)
        if own.first() is None:
            return False
        skipped = {**shadow.skipped}
        for reason, count in selection.skipped.items():
            if count:
                skipped[str(reason)] = skipped.get(str(reason), 0) + count
        as_read = Shadow.objects.filter(pk=shadow.pk, followed_until=shadow.followed_until)
        if not as_read.update(followed_until=end, taken=F("taken") + len(selection.taken), skipped=skipped):
            return False
        if selection.taken:
            _add(shadow, selection.taken)
            transaction.on_commit(call_worker)
    if selection.taken:
        logger.info("shadow.sampled experiment_id=%s items=%d", shadow.pk, len(selection.taken))
    return True


def _add(shadow: Shadow, answers: Sequence[ExperimentAnswer]) -> None:
    items = ExperimentItem.objects.filter(experiment=shadow.pk)
    last: int = items.aggregate(last=Max("position"))["last"] or 0
    for position, answer in enumerate(answers, start=last + 1):
        answer.item.experiment, answer.item.position = shadow.experiment, position
    ExperimentItem.objects.bulk_create([answer.item for answer in answers])
    asked = [ExperimentAnswer(item=answer.item, candidate=TARGET) for answer in answers]
    for answer in answers:
        answer.item_id = answer.item.pk
    ExperimentAnswer.objects.bulk_create([*answers, *asked])
