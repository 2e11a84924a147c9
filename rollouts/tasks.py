"""The Celery tasks of rollouts."""

from __future__ import annotations

from celery import shared_task

from rollouts.verdicts.evaluate import evaluate_running_rollouts


@shared_task(name="rollouts.evaluate")
def evaluate_rollouts() -> None:
    """Evaluates running rollouts once a minute. More beats or workers change nothing: see `verdicts.evaluate`."""
    evaluate_running_rollouts()
