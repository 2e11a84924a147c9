from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.audit.entries import audited_command
from core.errors import ApplicationError
from core.http.addresses import public_url
from core.management.requirements import require_tables
from core.services import bootstrap_project


class Command(BaseCommand):
    help = "Create a project with an API key of both scopes, and print both. The key cannot be shown again."
    # Django's checks are about the code and import every page: most of the command's time.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True, help="name of the new project")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    @audited_command
    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        try:
            made = bootstrap_project(name=options["name"])
        except ApplicationError as error:
            raise CommandError(error.message) from error
        answer = {"project_id": str(made.project_id), "api_key": made.api_key, "base_url": public_url()}
        if options["json"]:
            self.stdout.write(json.dumps(answer))
            return
        for name, value in answer.items():
            self.stdout.write(f"{name}: {value}")
