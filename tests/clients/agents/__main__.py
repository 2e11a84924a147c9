"""`python -m tests.clients.agents` writes the matrix into docs/clients.md; with the names of cells, or how they begin,
it plays these alone and prints what became of them. `make agents` installs the programs."""

from __future__ import annotations

import sys
import time

from tests.clients.agents.cells import CELLS, Cell, Outcome, play
from tests.clients.agents.matrix import matrix, write
from tests.fakes.dialects.server import DialectServer
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import GatewayService


def main(names: tuple[str, ...]) -> None:
    with GatewayService(workers=1, settings=LONG_TIMEOUTS) as service, DialectServer() as server:
        outcomes = {}
        for cell in CELLS:
            if not names or cell.name.startswith(names):
                began = time.monotonic()
                outcomes[cell.name] = play(cell, service, server)
                sys.stdout.write(_told(cell, outcomes[cell.name], time.monotonic() - began))
    if not names:
        write(matrix(lambda cell: outcomes[cell.name]))


def _told(cell: Cell, outcome: Outcome, seconds: float) -> str:
    lines = [f"===== {cell.name}: {outcome.faults(cell) or 'good'}, {seconds:.1f} s", outcome.printed[-3000:]]
    for entry in outcome.entries:
        record = entry.record
        lines.append(f"{record.operation} {record.status_code} {record.model} {record.session_id} {record.cost_usd}")
    lines += [f"{one.method} {one.path} {len(one.body)} {one.body[:200]!r}" for one in outcome.received]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
