from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from core.caller_limits import MAX_BUDGET_USD
from gateway.project_settings.declaration import Kind, Setting, declared
from gateway.project_settings.settings import ProjectSettings

_HEAD = ("| Field | Type | Range | Default | Meaning |", "|---|---|---|---|---|")
_TYPES = {
    Kind.MONEY: "number",
    Kind.TEXT: "string",
    Kind.URL: "string",
    Kind.CHOICE: "string",
    Kind.NAMES: "array of strings",
    Kind.EMAILS: "array of strings",
    Kind.CHOICES: "array of strings",
}


class Command(BaseCommand):
    help = "Print docs/settings.md with the tables of settings as they are declared."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write", action="store_true", help="write the page instead")

    def handle(self, *args: Any, **options: Any) -> None:
        page = settings.BASE_DIR / "docs" / "settings.md"
        described = describe(page.read_text(encoding="utf-8"))
        if options["write"]:
            page.write_text(described, encoding="utf-8")
        else:
            self.stdout.write(described, ending="")


def describe(page: str) -> str:
    guardrails = next(one for one in declared(ProjectSettings) if one.kind is Kind.OBJECT)
    tables = iter((declared(ProjectSettings), guardrails.settings))
    return "\n".join(_lines(page.split("\n"), tables))


def _lines(lines: Iterable[str], tables: Iterator[Iterable[Setting]]) -> Iterator[str]:
    is_table = False
    for line in lines:
        if line == _HEAD[0]:
            yield from (*_HEAD, *map(_row, next(tables)))
            is_table = True
        elif not is_table or not line.startswith("|"):
            yield line
            is_table = False


def _row(one: Setting) -> str:
    kind = _TYPES.get(one.kind, str(one.kind)) + (" or null" if one.is_nullable else "")
    default = {} if one.kind is Kind.OBJECT else one.default
    return f"| `{one.path}` | {kind} | {_range(one)} | `{json.dumps(default)}` | {one.help} |"


def _range(one: Setting) -> str:
    match one.kind:
        case Kind.CHOICE:
            return ", ".join(f"`{choice}`" for choice in one.choices)
        case Kind.MONEY:
            return f"0 to {MAX_BUDGET_USD}"
        case Kind.INTEGER | Kind.NUMBER:
            return f"{one.minimum} to {one.maximum}"
        case Kind.TEXT | Kind.URL:
            return f"at most {one.maximum} characters"
        case Kind.NAMES | Kind.EMAILS | Kind.CHOICES:
            return f"at most {one.maximum} entries"
    return ""
