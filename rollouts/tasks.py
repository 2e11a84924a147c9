from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from core.fleet.schedule import sent_if
from core.processes.run_all import run_all
from rollouts.verdicts.evaluate import evaluate_running_rollouts, running_rollouts
from rollouts.watch.look import watch_rollouts, watched_rollouts


def _is_due() -> bool:
    return running_rollouts().exists() or watched_rollouts(timezone.now()).exists()


@shared_task(name="rollouts.evaluate")
@sent_if(_is_due)
def evaluate_rollouts() -> None:
    """Evaluates, then watches targets at 100 % for each closed hour. More beats or workers change nothing."""
    run_all(evaluate_running_rollouts, watch_rollouts)
