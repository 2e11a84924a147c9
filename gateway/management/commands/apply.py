from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.management.requirements import require_tables
from gateway.configuration.applying import projects_of
from gateway.configuration.document import Source, read_file, read_stream, read_with_doubled
from gateway.management import configuration

_STANDARD_INPUT = "standard input"


class Command(BaseCommand):
    help = "Make projects what a YAML file says: the plan is shown first. Applying a file again changes nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="as manage.py export writes it; - for standard input")
        configuration.add_arguments(parser)
        parser.add_argument(
            "--prune", action="store_true", help="delete what a section of the file does not name any more"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        with configuration.unchanged_on_failure():
            source = _read(options["file"])
        with configuration.unchanged_on_failure(source), source.all_told(is_last=False):
            projects = projects_of(source)
        configuration.apply(self, "apply", source, projects, options)


def _read(name: str) -> Source:
    if name != "-":
        return read_with_doubled(name, read_file(name))
    return read_with_doubled(_STANDARD_INPUT, read_stream(_STANDARD_INPUT, sys.stdin.buffer))
