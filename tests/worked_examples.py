from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings


def page_of(name: str) -> str:
    return Path(settings.BASE_DIR, "docs", name).read_text()


def example_of(name: str) -> str:
    found = re.search("<!-- example: begin -->(.*)<!-- example: end -->", page_of(name), re.DOTALL)
    assert found is not None
    return found[1]


def rows(example: str, heading: str) -> list[list[str]]:
    lines = example[example.index(f"| {heading} |") :].split("\n\n")[0].strip().splitlines()
    cells = [[cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]
