from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, setup_logging, task_failure, task_success

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")

app = Celery("prompt_gateway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@task_failure.connect(weak=False)
def _count_failure(sender: Any, exception: BaseException, **_: Any) -> None:
    _note_run(sender.name, exception)


@task_success.connect(weak=False)
def _count_success(sender: Any, **_: Any) -> None:
    _note_run(sender.name, None)


def _note_run(name: str, error: BaseException | None) -> None:
    # Every process imports this file, and most of them run no task.
    from core.processes.background_tasks import note_run

    note_run(f"celery.{name}", error)


@celeryd_init.connect(weak=False)
def _check_keys(**_: Any) -> None:
    """Ends a Celery worker that has other encryption keys: each of its tasks would fail."""
    import django

    django.setup()
    from core.encryption.canary import (
        wrong_keys_by_own_connection,  # The model can be imported only after the apps are loaded.
    )

    if problem := wrong_keys_by_own_connection():
        # Celery logs any other exception of a signal's receiver and continues.
        raise SystemExit(problem)


@setup_logging.connect(weak=False)
def _keep_our_log(loglevel: int, **_: Any) -> None:
    """Keeps the log as Django's settings set it up: Celery would add handlers with formats of its own."""
    logging.getLogger("celery").setLevel(loglevel)
