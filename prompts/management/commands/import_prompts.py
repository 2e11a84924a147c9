from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import ValidationError as InvalidDocument

from core.audit.entries import audited_command
from core.errors import ApplicationError
from core.http.exception_handler import translate
from core.management.requirements import require_project
from prompts.serializers import ImportSerializer
from prompts.transfer import ImportedConfigOutcome, import_prompts

ACTOR = "command:import_prompts"
_MAX_PROBLEMS = 20


class Command(BaseCommand):
    help = (
        "Add the prompt configs, versions and labels of an exported document that a project does not have. "
        "Nothing that exists is changed, and importing again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="a document of export_prompts; - for standard input")
        parser.add_argument("--project", required=True, help="id or name of the project")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be added")

    @audited_command
    def handle(self, *args: Any, **options: Any) -> None:
        project = require_project(options["project"])
        document = _checked(_read(options["file"]))
        try:
            outcomes = import_prompts(
                project_id=project.pk,
                configs=document.imported(),
                actor=ACTOR,
                is_administrator=True,
                dry_run=options["dry_run"],
            )
        except ApplicationError as error:
            raise CommandError(error.message) from error
        self._report(outcomes, dry_run=options["dry_run"])

    def _report(self, outcomes: list[ImportedConfigOutcome], *, dry_run: bool) -> None:
        for outcome in outcomes:
            made = "new config, " if outcome.created else ""
            self.stdout.write(
                f"{outcome.name}: {made}{len(outcome.versions_added)} versions added,"
                f" {len(outcome.versions_skipped)} there already{_labels(outcome)}"
            )
        if dry_run:
            self.stdout.write("Dry run: nothing was changed.")


def _labels(outcome: ImportedConfigOutcome) -> str:
    return f", labels added: {', '.join(outcome.labels_added)}" if outcome.labels_added else ""


def _read(name: str) -> Any:
    try:
        raw = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        return json.loads(raw)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{name} is not JSON.") from error


def _checked(data: Any) -> ImportSerializer:
    document = ImportSerializer(data=data)
    try:
        document.is_valid(raise_exception=True)
    except InvalidDocument as error:
        known = translate(error)
        details = (known.details if known else None) or {}
        problems = [f"{field}: {messages[0]}" for field, messages in details.items()]
        raise CommandError("The document cannot be imported:\n" + "\n".join(problems[:_MAX_PROBLEMS])) from error
    return document
