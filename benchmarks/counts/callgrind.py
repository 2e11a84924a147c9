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
    program = shutil.which("valgrind")
    if program is None or shutil.which("vgdb") is None:
        raise NotCountedError("valgrind is not installed")
    return [
        program,
        "--tool=callgrind",
        "--instr-atstart=no",
        # Files of dumps are called so, with their number behind it.
        f"--callgrind-out-file={folder / 'callgrind'}",
    ]


class Instructions:
    def __init__(self, pid: int, folder: Path) -> None:
        self._pid = pid
        self._folder = folder
        self._dumps = 0
        self._since = 0.0
        self._by_clock = 0.0

    def switch(self, state: str) -> None:
        self._control("instrumentation", state)
        self._since = time.monotonic()

    async def learn_clock(self) -> None:
        """Counts what the idle worker does by the clock; `take` subtracts it.

        The slower the machine, the more of it falls into the time of a request, which would then seem to cost more.
        """
        self._by_clock = 0.0
        self.take()
        await asyncio.sleep(_IDLE_SECONDS)
        seconds = time.monotonic() - self._since
        self._by_clock = self.take() / seconds

    def take(self) -> float:
        """Returns the instructions since the last take. Raises RuntimeError if they cannot be had."""
        seconds = time.monotonic() - self._since
        self._control("dump")
        self._since = time.monotonic()
        newest = max(self._folder.glob("callgrind.*"), key=_number, default=None)
        if newest is None or _number(newest) <= self._dumps:
            # A dump of no instructions makes a file, too.
            raise RuntimeError(f"valgrind has made no dump of process {self._pid} in {self._folder}")
        self._dumps = _number(newest)
        text = newest.read_text(encoding="utf-8", errors="replace")
        totals = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
        if totals is None:
            raise RuntimeError("valgrind has written no total")
        return float(totals[1]) - self._by_clock * seconds

    def _control(self, *command: str) -> None:
        """callgrind_control, which asks vgdb as well, says OK and exits with 0 even if vgdb has failed."""
        options = [f"--pid={self._pid}", f"--cmd-time-out={_SECONDS:.0f}"]
        done = subprocess.run(["vgdb", *options, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            output = (done.stdout + done.stderr).strip()
            raise RuntimeError(f"process {self._pid} is not counted: vgdb {' '.join(command)}: {output[-300:]}")


def _number(file: Path) -> int:
    return int(file.suffix[1:])
