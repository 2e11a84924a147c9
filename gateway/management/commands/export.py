from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.management.requirements import require_project, require_tables
from core.models import Project
from gateway.configuration.written import as_yaml, exported


class Command(BaseCommand):
    help = "Write projects with their settings, providers, keys' limits, prompts and alerts as YAML, without secrets."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--project", action="append", help="id or name of a project; may be repeated; all without it"
        )
        parser.add_argument("--output", type=Path, help="file to write; standard output without it")

    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        named = options["project"]
        projects = [require_project(name) for name in named] if named else list(Project.objects.order_by("name"))
        text = as_yaml(exported(projects))
        if options["output"] is None:
            self.stdout.write(text, ending="")
            return
        try:
            options["output"].write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{options['output']} cannot be written: {error.strerror}.") from error
