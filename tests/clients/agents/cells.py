"""A cell of the matrix: one program edits a file by way of the gateway, over one vendor."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from analytics.request_log.record import SpoolEntry
from tests.clients.agents.brain import AFTER, BEFORE, FILE, Brain
from tests.clients.agents.programs import CODEX_COMPACTING, PROGRAMS, Program
from tests.clients.agents.tap import tapped
from tests.clients.agents.vendors import ANTHROPIC, DEEPSEEK, KIMI, MIMO, OPENAI, THINKERS, VENDORS, Vendor
from tests.fakes.dialects.server import DialectServer, script_path
from tests.fakes.upstream import Received
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import credentials_row

# The service's seeder and the reader of its log serve one at a time.
_ONE_AT_A_TIME = threading.Lock()
# The model group that programs are set to whose vendor breaks off.
_GROUP = "coder"
# How the paths of an operation end, at the gateway as at a vendor of the same protocol.
_PATHS = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "messages": "/messages",
    "generate_content": "enerateContent",
    "count_tokens": "/messages/count_tokens",
}


@dataclass(frozen=True)
class Cell:
    """`then` is the vendor that continues when the first one breaks off in the middle of the program's loop."""

    program: Program
    vendor: Vendor
    then: Vendor | None = None

    @property
    def name(self) -> str:
        after = f"-{self.then.provider}" if self.then is not None else ""
        return f"{self.program.name}-{self.vendor.provider}{after}"

    @property
    def model(self) -> str:
        return self.vendor.model if self.then is None else _GROUP

    @property
    def vendors(self) -> tuple[Vendor, ...]:
        return (self.vendor,) if self.then is None else (self.vendor, self.then)


CELLS = tuple(Cell(program, vendor) for program, vendor in product(PROGRAMS, VENDORS))
COMPACTING = tuple(Cell(CODEX_COMPACTING, vendor) for vendor in VENDORS if vendor.provider != "openai")
THINKING = tuple(Cell(PROGRAMS[0], vendor) for vendor in THINKERS)
_CLAUDE_CODE, _CODEX = PROGRAMS[0], next(program for program in PROGRAMS if program.name == "codex")
FAILING_OVER = (
    Cell(_CLAUDE_CODE, ANTHROPIC, KIMI),
    Cell(_CODEX, OPENAI, DEEPSEEK),
    Cell(replace(CODEX_COMPACTING, name="codex_compacting_on"), ANTHROPIC, MIMO),
)
BESIDE = COMPACTING + THINKING + FAILING_OVER
"""Cells that are not in the matrix."""


@dataclass(frozen=True)
class Outcome:
    """What a program left: exit code and output, the file's text, the gateway's log in request order, what the vendor
    received, and the bytes of each of its connections."""

    code: int
    printed: str
    text: str
    entries: list[SpoolEntry]
    received: list[Received]
    sent: list[bytearray]

    def faults(self, cell: Cell) -> list[str]:
        """Returns what went wrong; empty if the program did its work and the log shows all of it."""
        return list(self._faults(cell))

    @property
    def is_forwarded(self) -> bool:
        """Returns whether the vendor was spoken to in the program's own protocol."""
        paths = {_PATHS[entry.record.operation] for entry in self.entries}
        return all(script_path(one.path).partition("?")[0].endswith(tuple(paths)) for one in self.received)

    def _faults(self, cell: Cell) -> Iterator[str]:
        if self.code:
            yield f"exit code {self.code}"
        if self.text != f"{AFTER}\n":
            yield f"{FILE} holds {self.text!r}"
        # A program that ends may leave a question on the side, as OpenCode leaves that for a title.
        records = [entry.record for entry in self.entries if entry.record.outcome != "cancelled"]
        yield from (f"{one.operation}: {one.status_code} {one.error_message}" for one in records if one.error_code)
        if len(records) < len(cell.program.turns) + 1:
            yield f"{len(records)} requests in the log"
        sessions = {record.session_id for record in records}
        if len(sessions) != 1 or "" in sessions:
            yield f"sessions {sorted(sessions)}"
        if not all(float(record.cost_usd or 0) for record in records if record.operation != "count_tokens"):
            yield "a request without its cost"


def play(cell: Cell, service: GatewayService, server: DialectServer) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="agent-") as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        home.mkdir()
        work.mkdir()
        (work / FILE).write_text(f"{BEFORE}\n")
        brain = Brain(cell.program.turns, str(work), cell.program.answer)
        scripts = [
            server.play(f"{cell.name}-{number}", vendor.step(brain.think, breaks=vendor is not cell.vendors[-1]))
            for number, vendor in enumerate(cell.vendors)
        ]
        gateway = _project(cell, service, server)
        with tapped(gateway.port) as tap:
            done = _run(cell, home, work, {"url": tap.url, "key": gateway.key, "model": cell.model})
        text = (work / FILE).read_text()
    received = [one for script in scripts for one in script.received]
    entries = _entries(gateway, len(received))
    return Outcome(done.returncode, done.stdout + done.stderr, text, entries, received, tap.sent)


def _project(cell: Cell, service: GatewayService, server: DialectServer) -> Gateway:
    rows = [
        credentials_row(vendor.fake.credentials(server.base_url(f"{cell.name}-{number}")))
        for number, vendor in enumerate(cell.vendors)
    ]
    with _ONE_AT_A_TIME:
        gateway = service.new_project(integrations=rows, prices=[vendor.price for vendor in cell.vendors])
        if cell.then is not None:
            members = [{"model": vendor.model} for vendor in cell.vendors]
            group = {"name": _GROUP, "strategy": "ordered", "members": members}
            assert gateway.manage("POST", "model-groups", group).status_code == 201
        return gateway


def _run(cell: Cell, home: Path, work: Path, values: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return cell.program.run(home, work, values)
    except subprocess.TimeoutExpired as late:
        words = b"".join(text for text in (late.stdout, late.stderr) if isinstance(text, bytes))
        return subprocess.CompletedProcess((), 124, f"did not end in time\n{words.decode(errors='replace')}", "")


def _entries(gateway: Gateway, received: int) -> list[SpoolEntry]:
    """Waits until the log has as many calls as the vendors received."""

    def found() -> list[SpoolEntry]:
        with _ONE_AT_A_TIME:
            entries = gateway.service.spooled.entries()
            return [entry for entry in entries if entry.record.project_id == gateway.project_id]

    def is_whole(entries: list[SpoolEntry]) -> bool:
        return sum(max(1, len(entry.record.attempts)) for entry in entries) >= received

    entries = gateway.service.until(found, is_whole)
    return sorted(entries, key=lambda entry: entry.record.ts)
