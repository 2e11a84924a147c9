"""The instructions of a web worker under valgrind, and how often it allocates memory."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import time
from pathlib import Path

from benchmarks.counts.kernel import NotCountedError

_SECONDS = 120.0
_IDLE_SECONDS = 10.0


def command(folder: Path) -> list[str]:
    """Returns the command in front of a worker that waits to be counted. Raises NotCountedError without valgrind."""
    program = shutil.which("valgrind")
    if program is None or shutil.which("callgrind_control") is None:
        raise NotCountedError("valgrind is not installed")
    return [
        program,
        "--tool=callgrind",
        "--instr-atstart=no",
        # Files of dumps are called so, with their number behind it.
        f"--callgrind-out-file={folder / 'callgrind'}",
    ]


class Instructions:
    """The instructions of a worker that valgrind runs; its files are in `folder`."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid = pid
        self._folder = folder
        self._dumps = 0
        self._since = 0.0
        self._by_clock = 0.0

    def switch(self, state: str) -> None:
        """Begins (`on`) or ends (`off`) counting."""
        self._control(f"--instr={state}")
        self._since = time.monotonic()

    async def learn_clock(self) -> None:
        """Counts what the worker does by the clock, while nobody sends it anything: `take` leaves as much out.

        The slower the machine, the more of it falls into the time of a request, which then would seem to cost more.
        """
        self._by_clock = 0.0
        self.take()
        await asyncio.sleep(_IDLE_SECONDS)
        seconds = time.monotonic() - self._since
        self._by_clock = self.take() / seconds

    def take(self) -> float:
        """Returns the instructions since counting began or were taken last."""
        seconds = time.monotonic() - self._since
        self._control("--dump")
        self._since = time.monotonic()
        newest = max(self._folder.glob("callgrind.*"), key=_number, default=None)
        if newest is None or _number(newest) <= self._dumps:
            return 0.0  # A dump of no instructions makes no file.
        self._dumps = _number(newest)
        text = newest.read_text(encoding="utf-8", errors="replace")
        totals = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
        if totals is None:
            raise RuntimeError("valgrind has written no total")
        return float(totals[1]) - self._by_clock * seconds

    def _control(self, option: str) -> None:
        done = subprocess.run(
            ["callgrind_control", option, str(self._pid)], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        output = (done.stdout + done.stderr).strip()
        # Its exit status is 0 also where it reaches no process, of which no line says OK.
        if done.returncode or "OK." not in output.split() or "Error" in output:
            raise RuntimeError(f"callgrind_control {option}: {output[-300:]}")


def _number(file: Path) -> int:
    """Returns the number of a dump, which grows from one to the next."""
    return int(file.suffix[1:])
