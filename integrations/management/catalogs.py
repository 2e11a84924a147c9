from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser

from integrations.pricing.entries import CatalogError


class CatalogCommand(BaseCommand):
    requires_system_checks = []
    build: ClassVar[staticmethod[[Any, Any], str]]
    output: ClassVar[Path]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--catalog-a", type=Path, required=True, metavar="FILE")
        parser.add_argument("--catalog-b", type=Path, required=True, metavar="FILE")
        parser.add_argument("--output", type=Path, default=self.output, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            text = self.build(_decoded(options["catalog_a"]), _decoded(options["catalog_b"]))
        except (OSError, ValueError, CatalogError) as error:
            raise CommandError(str(error)) from error
        options["output"].write_text(text, encoding="utf-8")
        self.stdout.write(f"{options['output']}: {len(text)} bytes")


def _decoded(file: Path) -> Any:
    return json.loads(file.read_bytes())
