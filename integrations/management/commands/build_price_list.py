"""Writes the price list that ships with the product from the two catalogs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from typing_extensions import override

from integrations.pricing.entries import CatalogError
from integrations.pricing.shipped import PRICE_LIST, build


class Command(BaseCommand):
    help = "Build integrations/pricing/price_list.json from catalog_a and catalog_b."
    requires_system_checks = []

    @override
    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--catalog-a", type=Path, required=True, metavar="FILE")
        parser.add_argument("--catalog-b", type=Path, required=True, metavar="FILE")
        parser.add_argument("--output", type=Path, default=PRICE_LIST, metavar="FILE")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            text = build(_decoded(options["catalog_a"]), _decoded(options["catalog_b"]))
        except (OSError, ValueError, CatalogError) as error:
            raise CommandError(str(error)) from error
        options["output"].write_text(text, encoding="utf-8")
        self.stdout.write(f"{options['output']}: {len(text)} bytes")


def _decoded(file: Path) -> Any:
    return json.loads(file.read_bytes())
