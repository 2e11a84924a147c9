"""Real coding agents: each reads and edits a file over each vendor, set as the page says.

The vendors are strict fakes, so a request that a real one would refuse is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.agents.cells import BESIDE, CELLS, Cell, Outcome
from tests.clients.agents.matrix import COMMAND, documented, heading, matrix
from tests.clients.agents.programs import PROGRAMS, Program
from tests.clients.agents.vendors import VENDORS
from tests.night import cases

# By day each program runs once, and each vendor is met in its own protocol or in another's.
BY_DAY = {
    "claude_code-anthropic",
    "codex-openai",
    "codex_with_mcp-anthropic",
    "codex_by_address-vllm",
    "opencode-openai",
    "gemini_cli-google",
    "qwen_code-vllm",
    "aider-google",
}
each_cell = pytest.mark.parametrize(
    "cell", cases(CELLS, by_day=[cell for cell in CELLS if cell.name in BY_DAY]), ids=lambda cell: str(cell.name)
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: str(program.name))
def test_program__of_the_lock_file__is_installed(agents: None, program: Program) -> None:
    assert program.path().is_file()


@each_cell
def test_agent__over_a_vendor__edits_the_file_and_the_log_tells_all_of_it(
    outcome_of: Callable[[Cell], Outcome], cell: Cell
) -> None:
    outcome = outcome_of(cell)
    assert outcome.faults(cell) == [], outcome.printed[-4000:]


@pytest.mark.parametrize("cell", BESIDE, ids=lambda cell: str(cell.name))
def test_agent__that_compacts_fails_over_or_meets_a_thinking_vendor__edits_the_file(
    outcome_of: Callable[[Cell], Outcome], cell: Cell
) -> None:
    outcome = outcome_of(cell)
    assert outcome.faults(cell) == [], outcome.printed[-4000:]
    assert any(b"compaction_trigger" in sent for sent in outcome.sent) == cell.program.name.startswith(
        "codex_compacting"
    )
    assert any(entry.record.fallback_used for entry in outcome.entries) == (cell.then is not None)


@each_cell
def test_agent__at_its_own_vendor__sends_the_bytes_that_the_vendor_gets(
    outcome_of: Callable[[Cell], Outcome], cell: Cell
) -> None:
    outcome = outcome_of(cell)
    is_native = all(entry.record.is_native for entry in outcome.entries)
    kept = [any(one.body in sent for sent in outcome.sent) for one in outcome.received]
    assert not is_native or all(kept)


def test_cells_by_day__each_program_once__and_every_vendor() -> None:
    by_day = [cell for cell in CELLS if cell.name in BY_DAY]
    assert [cell.program.name for cell in by_day] == [program.name for program in PROGRAMS]
    assert {cell.vendor.provider for cell in by_day} == {vendor.provider for vendor in VENDORS}


def test_matrix__of_the_page__has_the_programs_of_the_lock_files() -> None:
    rows = documented().splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [heading(program) for program in PROGRAMS]


@pytest.mark.night
def test_matrix__of_the_page__is_what_this_run_has_seen(outcome_of: Callable[[Cell], Outcome]) -> None:
    assert documented() == matrix(outcome_of), f"docs/clients.md is not current: {COMMAND}"
