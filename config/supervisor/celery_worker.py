"""Celery's worker with beat in one process.

`celery -A config worker --beat` runs beat in a forked process, which outlives a killed worker, and whose death the
worker does not notice: then nothing is scheduled, and no supervisor can restart it. Here beat is a thread, and the
process ends with it. Tasks run in threads too, because the ClickHouse client and its engine do not survive a fork.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from celery.beat import EmbeddedService
from celery.signals import worker_ready, worker_shutting_down

from config.celery import app

CONCURRENCY = 2


def main(concurrency: int = CONCURRENCY) -> None:
    # Django's checks look at the code, not at the host, and import every page of the service: a third of this process's
    # start. `make check` runs them.
    os.environ.setdefault("CELERY_SKIP_CHECKS", "true")
    # The type stubs describe the process that EmbeddedService is without `thread`.
    beat: Any = EmbeddedService(app, thread=True, scheduler_cls=app.conf.beat_scheduler)
    _end_with(beat)

    def begin(**_: Any) -> None:
        beat.start()

    def end(**_: Any) -> None:
        if beat.is_alive():
            beat.stop()

    worker_ready.connect(begin, weak=False)
    worker_shutting_down.connect(end, weak=False)
    worker = app.Worker(
        pool_cls="threads",
        concurrency=concurrency,
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        # An event every two seconds, to which nobody listens.
        without_heartbeat=True,
    )
    worker.start()
    sys.exit(worker.exitcode)


def _end_with(beat: threading.Thread) -> None:
    """Ends the worker when its beat has died, so that the supervisor starts both again."""
    default_hook = threading.excepthook

    def ended(failure: threading.ExceptHookArgs) -> None:
        default_hook(failure)
        if failure.thread is beat:
            os.kill(os.getpid(), signal.SIGTERM)

    threading.excepthook = ended
