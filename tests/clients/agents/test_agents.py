"""Real coding agents, as their makers publish them: each reads and edits a file over each vendor, set as the page says.

The vendors are strict fakes, so a request that a real one would refuse is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.agents.cells import CELLS, Cell, Outcome
from tests.clients.agents.matrix import COMMAND, documented, matrix
from tests.clients.agents.programs import PROGRAMS, Program

each_cell = pytest.mark.parametrize("cell", CELLS, ids=lambda cell: str(cell.name))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: str(program.name))
def test_program__of_the_lock_file__is_installed(agents: None, program: Program) -> None:
    assert program.path().is_file()


@each_cell
def test_agent__over_a_vendor__edits_the_file_and_the_log_tells_all_of_it(
    outcome_of: Callable[[Cell], Outcome], cell: Cell
) -> None:
    outcome = outcome_of(cell)
    assert outcome.faults(cell) == [], outcome.printed[-4000:]


@each_cell
def test_agent__at_its_own_vendor__sends_the_bytes_that_the_vendor_gets(
    outcome_of: Callable[[Cell], Outcome], cell: Cell
) -> None:
    outcome = outcome_of(cell)
    is_native = all(entry.record.is_native for entry in outcome.entries)
    kept = [any(one.body in sent for sent in outcome.sent) for one in outcome.received]
    assert not is_native or all(kept)


def test_matrix__of_the_page__is_what_this_run_has_seen(outcome_of: Callable[[Cell], Outcome]) -> None:
    assert documented() == matrix(outcome_of), f"docs/clients.md is not current: {COMMAND}"
