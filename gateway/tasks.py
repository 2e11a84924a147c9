"""What Celery runs."""

from __future__ import annotations

from celery import shared_task

from gateway.retention import expire_judgements as expire


@shared_task(name="gateway.expire_judgements")
def expire_judgements() -> None:
    """Once a day. Repeatable."""
    expire()
