"""The gateway's Celery tasks. Each may run repeatedly and in several workers at once."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial

from celery import shared_task
from django.utils import timezone

from analytics.errors import AnalyticsUnavailableError
from analytics.online_evaluations import follow as online_evaluations
from analytics.online_evaluations import queue as online_queue
from analytics.reviews.due_labels import fill_queues, open_queues
from analytics.scores.sync.run import is_copy_due
from analytics.tasks import copy_scores, reconcile_rollups
from core.fleet.schedule import sent_if
from core.processes.run_all import run_all
from gateway.alerts.delivery import deliver, due_deliveries
from gateway.alerts.watch import is_any_watched, raise_alerts
from gateway.evaluations import labelled, online
from gateway.experiments import queue as experiments
from gateway.experiments.run import run_due_experiment
from gateway.experiments.start import TASK
from gateway.figure_alerts import check as figure_alerts
from gateway.guardrails import verdict_scores as scores
from gateway.retention import expire_judgements
from gateway.shadow import follow as shadows

_WEEK_OF_MINUTES = 7 * 24 * 60
_LOOKED_BACK_MINUTES, _LATE_MINUTES, _BETWEEN_LATE_MINUTES = 15, 360, 15


@shared_task(name="gateway.nightly")
def nightly() -> None:
    """Deletes expired scores and feedback, scores missed verdicts, and reconciles rollups."""
    run_all(expire_judgements, partial(score_verdicts, _WEEK_OF_MINUTES), reconcile_rollups)


def _are_alerts_due() -> bool:
    return is_any_watched() or figure_alerts.is_any_due() or bool(due_deliveries())


@shared_task(name="gateway.check_alerts")
@sent_if(_are_alerts_due)
def check_alerts() -> None:
    """Raises budget alerts, and looks at the alerts on figures that are due."""
    run_all(raise_alerts, figure_alerts.check_due_alerts, _deliver_due)


def _deliver_due() -> None:
    for delivery_id in due_deliveries():
        deliver_alert.delay(delivery_id)


@shared_task(name="gateway.deliver_alert")
def deliver_alert(delivery_id: int) -> None:
    """Tries one delivery; a failed one is due again later."""
    deliver(delivery_id)


def _is_judging_due() -> bool:
    return experiments.is_anything_due() or online_queue.has_work()


@shared_task(name=TASK)
@sent_if(_is_judging_due)
def judge() -> None:
    """Runs a slice of the experiment that has waited longest, then judges answers that online evaluations have due, and
    calls itself again while more is due."""
    try:
        is_experiment_due = run_due_experiment()
    finally:
        are_answers_due = online.judge_due()
    if is_experiment_due or are_answers_due:
        judge.delay()


def _is_log_due() -> bool:
    return online_evaluations.is_behind() or shadows.is_behind() or open_queues().exists()


@shared_task(name="gateway.follow_log")
@sent_if(_is_log_due)
def follow_log() -> None:
    """Gives online evaluations their tasks and shadows their items from the minutes of the request log that are
    complete, and open review queues the labels that came due. Calls itself again while minutes are left."""
    run_all(_follow_log, partial(fill_queues, timezone.now()))


def _follow_log() -> None:
    try:
        if online_evaluations.follow_log() | shadows.follow_log():
            follow_log.delay()
    except AnalyticsUnavailableError as error:
        logging.getLogger("gateway.evaluations").warning("sample.postponed error=%s", type(error).__name__)


@shared_task(name="gateway.score_labelled")
def score_labelled() -> None:
    """Scores answers that people labelled for an evaluator, and calls itself again while more are due."""
    if labelled.score_labelled():
        score_labelled.delay()


def _are_scores_due() -> bool:
    return scores.is_any_guarded(back=timedelta(minutes=_LATE_MINUTES)) or is_copy_due()


@shared_task(name="gateway.score_verdicts")
@sent_if(_are_scores_due)
def score_verdicts(minutes: int | None = None) -> None:
    """Scores the verdicts on requests of the last `minutes`, and copies scores.

    By default it looks 15 minutes back, and at every quarter of an hour six hours, for the records of slow requests.
    """
    if minutes is None:
        is_late_turn = timezone.now().minute % _BETWEEN_LATE_MINUTES == 0
        minutes = _LATE_MINUTES if is_late_turn else _LOOKED_BACK_MINUTES
    run_all(partial(_score_verdicts, timedelta(minutes=minutes)), copy_scores)


def _score_verdicts(back: timedelta) -> None:
    try:
        scores.score_verdicts(back=back)
    except AnalyticsUnavailableError as error:
        logging.getLogger("gateway.guardrails").warning("verdicts.postponed error=%s", type(error).__name__)
