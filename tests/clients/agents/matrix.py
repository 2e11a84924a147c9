from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.clients.agents.cells import Cell, Outcome
from tests.clients.agents.programs import PROGRAMS, Program
from tests.clients.agents.vendors import VENDORS
from tests.clients.clients import ROOT
from tests.clients.page import PAGE

COMMAND = "python -m tests.clients.agents"
_MATRIX = re.compile(r"(?<=<!-- agents -->\n\n)(?:\|.*\n)*")
_NODE_LOCK = Path(__file__).parent / "package-lock.json"
_PYTHON_LOCK = ROOT / "requirements" / "clients-aider.lock"


def matrix(outcome_of: Callable[[Cell], Outcome]) -> str:
    head = ["Program", *(f"{vendor.title}, `{vendor.model}`" for vendor in VENDORS), "Session"]
    rows = [_row(program, outcome_of) for program in PROGRAMS]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:], ""])


def documented() -> str:
    found = _MATRIX.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, f"{PAGE} has no place for the matrix"
    return found[0]


def write(table: str) -> None:
    PAGE.write_text(_MATRIX.sub(lambda _: table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def heading(program: Program) -> str:
    kind = f" {program.kind}" if program.kind else ""
    return f"{program.title} {version_of(program)}{kind}"


def _row(program: Program, outcome_of: Callable[[Cell], Outcome]) -> list[str]:
    cells = [Cell(program, vendor) for vendor in VENDORS]
    return [
        heading(program),
        *(_text(cell, outcome_of(cell)) for cell in cells),
        program.session,
    ]


def _text(cell: Cell, outcome: Outcome) -> str:
    faults = outcome.faults(cell)
    if faults:
        return f"no: {faults[0]}"
    return "forwarded" if outcome.is_forwarded else "translated"


def version_of(program: Program) -> str:
    if program.package.startswith("aider"):
        found = re.search(rf"^{program.package}==(\S+)", _PYTHON_LOCK.read_text(), re.MULTILINE)
        assert found is not None
        return found[1]
    version: str = json.loads(_NODE_LOCK.read_text())["packages"][f"node_modules/{program.package}"]["version"]
    return version
