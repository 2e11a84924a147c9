"""What Celery runs."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task

from analytics.errors import AnalyticsUnavailableError
from gateway import verdict_scores as scores
from gateway.alerts.delivery import deliver, due_deliveries
from gateway.alerts.watch import raise_alerts
from gateway.retention import expire_judgements as expire


@shared_task(name="gateway.expire_judgements")
def expire_judgements() -> None:
    """Once a day. Repeatable."""
    expire()


@shared_task(name="gateway.watch_budgets")
def watch_budgets() -> None:
    """Every half a minute. More beats or workers change nothing: see gateway.alerts."""
    raise_alerts()
    for delivery_id in due_deliveries():
        deliver_alert.delay(delivery_id)


@shared_task(name="gateway.deliver_alert")
def deliver_alert(delivery_id: int) -> None:
    """One try; what fails is due again later."""
    deliver(delivery_id)


@shared_task(name="gateway.score_verdicts")
def score_verdicts(minutes: int) -> None:
    """Of requests that came in within so many minutes. Repeatable; longer looks find what came late."""
    try:
        scores.score_verdicts(back=timedelta(minutes=minutes))
    except AnalyticsUnavailableError as error:
        logging.getLogger("gateway.guardrails").warning("verdicts.postponed error=%s", type(error).__name__)
