"""The gateway's Celery tasks."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task

from analytics.errors import AnalyticsUnavailableError
from gateway.alerts.delivery import deliver, due_deliveries
from gateway.alerts.watch import raise_alerts
from gateway.evaluations import labelled, online
from gateway.experiments.run import run_due_experiment
from gateway.figure_alerts.check import check_due_alerts
from gateway.guardrails import verdict_scores as scores
from gateway.retention import expire_judgements as expire
from gateway.shadow.follow import follow_log


@shared_task(name="gateway.expire_judgements")
def expire_judgements() -> None:
    """Deletes expired scores and feedback, once a day. Repeatable."""
    expire()


@shared_task(name="gateway.watch_budgets")
def watch_budgets() -> None:
    """Raises budget alerts, every half a minute. Concurrent runs raise no alert twice (see gateway.alerts)."""
    raise_alerts()
    _deliver_due()


@shared_task(name="gateway.check_alerts")
def check_alerts() -> None:
    """Looks at the alerts on figures that are due, twice a minute. Concurrent runs look at no alert twice."""
    if check_due_alerts():
        _deliver_due()


def _deliver_due() -> None:
    for delivery_id in due_deliveries():
        deliver_alert.delay(delivery_id)


@shared_task(name="gateway.deliver_alert")
def deliver_alert(delivery_id: int) -> None:
    """Tries one delivery; a failed one is due again later."""
    deliver(delivery_id)


@shared_task(name="gateway.run_experiments")
def run_experiments() -> None:
    """Runs a slice of the experiment that has waited longest, and calls itself again while one is due. Repeatable: no
    two workers take the same experiment, and one whose worker died is taken again."""
    if run_due_experiment():
        run_experiments.delay()


@shared_task(name="gateway.follow_shadows")
def follow_shadows() -> None:
    """Gives shadows their items from the minutes of the request log that are complete. Repeatable: cursor and items are
    written together."""
    try:
        if follow_log():
            follow_shadows.delay()
    except AnalyticsUnavailableError as error:
        logging.getLogger("gateway.shadow").warning("shadows.postponed error=%s", type(error).__name__)


@shared_task(name="gateway.score_labelled")
def score_labelled() -> None:
    """Scores answers that people labelled for an evaluator, and calls itself again while more are due. Repeatable: no
    two workers take the same ones."""
    if labelled.score_labelled():
        score_labelled.delay()


@shared_task(name="gateway.judge_answers")
def judge_answers() -> None:
    """Judges answers that online evaluations have due, and calls itself again while more are. Repeatable: no two
    workers take the same ones, and those of a dead one are taken again."""
    if online.judge_due():
        judge_answers.delay()


@shared_task(name="gateway.score_verdicts")
def score_verdicts(minutes: int) -> None:
    """Scores the verdicts on requests of the last `minutes`. Repeatable; longer periods find late records."""
    try:
        scores.score_verdicts(back=timedelta(minutes=minutes))
    except AnalyticsUnavailableError as error:
        logging.getLogger("gateway.guardrails").warning("verdicts.postponed error=%s", type(error).__name__)
