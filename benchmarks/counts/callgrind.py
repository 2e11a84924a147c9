"""The instructions of a web worker under valgrind, and how often it allocates memory."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from benchmarks.counts.kernel import NotCountedError

_SECONDS = 120.0


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

    def switch(self, state: str) -> None:
        """Begins (`on`) or ends (`off`) counting."""
        self._control(f"--instr={state}")

    def take(self) -> float:
        """Returns the instructions since counting began or were taken last."""
        self._control("--dump")
        newest = max(self._folder.glob("callgrind.*"), key=lambda file: int(file.suffix[1:]))
        text = newest.read_text(encoding="utf-8", errors="replace")
        totals = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
        if totals is None:
            raise RuntimeError("valgrind has written no total")
        return float(totals[1])

    def _control(self, option: str) -> None:
        done = subprocess.run(
            ["callgrind_control", option, str(self._pid)], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode or "Error" in done.stdout + done.stderr:
            raise RuntimeError(f"callgrind_control {option}: {(done.stdout + done.stderr).strip()[-300:]}")
