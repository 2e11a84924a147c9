"""The table of rights as text, so that a review sees it in one place; `python -m tests.rights.table` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.rights.table import MODELS, OPERATIONS, PAGES, SCOPE_OPERATIONS, SCOPE_RIGHTS, TOOLS

FILE = Path(__file__).with_name("table.txt")


def table() -> str:
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield "# Operations of the API: the right that people need, and the scopes of which a key needs one."
    for name, right in sorted(OPERATIONS.items()):
        opening = [scope for scope, names in SCOPE_OPERATIONS.items() if name in names]
        opening += [scope for scope, rights in SCOPE_RIGHTS.items() if right in rights]
        yield f"{name:34}{right:16}{' '.join(sorted(opening))}".rstrip()
    yield "\n# Tools of the agent and of MCP."
    yield from (f"{name:34}{right}" for name, right in sorted(TOOLS.items()))
    yield "\n# Pages of the admin, by the name of their URL."
    yield from (f"{name:34}{right}" for name, right in sorted(PAGES.items()))
    yield "\n# Tables in the admin: view, add, change, delete."
    for name, rows in sorted(MODELS.items()):
        yield f"{name:34}{rows.view:16}{rows.add:16}{rows.change:16}{rows.delete}"


if __name__ == "__main__":
    FILE.write_text(table(), encoding="utf-8")
