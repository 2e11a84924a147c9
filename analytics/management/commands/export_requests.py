from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError

from analytics.exports.lines import request_lines
from analytics.queries.request_filters import RequestFilter
from core.errors import ApplicationError
from core.management.requirements import require_project


class Command(BaseCommand):
    help = "Write a project's requests, the oldest first, one JSON object a line, as the export over HTTP does."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="id or name of the project")
        parser.add_argument("--content", action="store_true", help="with the bodies of requests and responses")
        parser.add_argument("--output", type=Path, help="file to write; standard output when it is left out")

    def handle(self, *args: Any, **options: Any) -> None:
        project = require_project(options["project"])
        try:
            with _output(options["output"]) as output:
                for piece in request_lines(project.pk, RequestFilter(), content=options["content"]):
                    output.write(piece)
        except (ApplicationError, OSError) as error:
            raise CommandError(str(error)) from error


@contextmanager
def _output(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with path.open("wb") as file:
            yield file
