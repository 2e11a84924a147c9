"""The Celery tasks of rollouts."""

from __future__ import annotations

from celery import shared_task

from rollouts.verdicts.evaluate import evaluate_running_rollouts
from rollouts.watch.look import watch_rollouts


@shared_task(name="rollouts.evaluate")
def evaluate_rollouts() -> None:
    """Evaluates running rollouts once a minute. More beats or workers change nothing: see `verdicts.evaluate`."""
    evaluate_running_rollouts()


@shared_task(name="rollouts.watch")
def watch_targets() -> None:
    """Compares targets at 100 % with the baseline's last week, once for each closed hour: see `watch.look`."""
    watch_rollouts()
