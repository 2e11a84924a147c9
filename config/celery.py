"""The Celery application; `celery -A config worker --beat` runs it."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")

app = Celery("prompt_gateway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_init.connect(weak=False)
def _check_keys(**_: Any) -> None:
    """A worker with other encryption keys would fail one task after the other."""
    import django

    django.setup()
    from core.canary import wrong_keys_by_own_connection  # its model can be imported only now

    if problem := wrong_keys_by_own_connection():
        # Celery logs other exceptions of a receiver and goes on.
        raise SystemExit(problem)
