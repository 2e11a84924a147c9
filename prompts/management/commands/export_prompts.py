from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from core.management.requirements import require_project
from prompts.models import PromptConfig
from prompts.transfer import export_prompts


class Command(BaseCommand):
    help = "Write a project's prompt configs with all their versions as JSON, to a file or to standard output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="id or name of the project")
        parser.add_argument("--config", help="name of one config; all of them without it")
        parser.add_argument("--output", type=Path, help="file to write; standard output without it")

    def handle(self, *args: Any, **options: Any) -> None:
        project = require_project(options["project"])
        config_id = None if options["config"] is None else _config_id(project.pk, options["config"])
        document = json.dumps(export_prompts(project.pk, config_id), ensure_ascii=False, indent=2)
        if options["output"] is None:
            self.stdout.write(document)
            return
        try:
            options["output"].write_text(document + "\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{options['output']} cannot be written: {error.strerror}") from error


def _config_id(project_id: UUID, name: str) -> UUID:
    config = PromptConfig.objects.for_project(project_id).filter(name=name).first()
    if config is None:
        raise CommandError(f"The project has no prompt config named {name!r}.")
    return config.pk
