"""`manage.py celery_worker` runs background tasks, and schedules them if no other host does."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from config.supervisor import celery_worker


class Command(BaseCommand):
    help = "Run Celery's worker with beat in one process, which ends when either of them does, until SIGTERM."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--concurrency",
            type=int,
            default=celery_worker.CONCURRENCY,
            help="how many tasks run at once (%(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        celery_worker.main(options["concurrency"])
