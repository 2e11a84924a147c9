from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandParser

from integrations.model_lists.refresh import refresh_lists


class Command(BaseCommand):
    help = (
        "Read the lists of models of all enabled integrations now. Celery does so for each within a minute and hourly."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", type=UUID, help="The id of the project; all projects without it.")

    def handle(self, *args: Any, **options: Any) -> None:
        for outcome in refresh_lists(every=True, project_id=options["project"]):
            result = f"not read: {outcome.problem}" if outcome.problem else f"{outcome.models} models"
            self.stdout.write(f"{outcome.project_id} {outcome.provider}: {result}")
