from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_START_SECONDS = 20.0
_POLL_SECONDS = 0.01
# A call that another thread interrupts has two lines, of which the second is no further call.
_LINE = re.compile(r"^\d+\s+(\d+\.\d+) (\w+)\(")


class NotCountedError(Exception):
    """A tool is missing or may not run here; the message says which and why."""


def reads_and_writes(pid: int) -> dict[str, float]:
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    values = dict(line.split(": ") for line in lines)
    return {"reads": float(values["syscr"]), "writes": float(values["syscw"])}


class Trace:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._marks: list[float] = []

    def mark(self) -> None:
        self._marks.append(time.time())

    def between_marks(self) -> list[Counter[str]]:
        found: list[Counter[str]] = [Counter() for _ in range(len(self._marks) + 1)]
        for line in self._file.read_text(encoding="utf-8", errors="replace").splitlines():
            if call := _LINE.match(line):
                found[bisect_right(self._marks, float(call[1]))][call[2]] += 1
        return found[1:-1]


@contextmanager
def traced(pid: int, file: Path) -> Iterator[Trace]:
    """Yields while strace follows all threads of the process. Raises NotCountedError if it cannot run."""
    program = shutil.which("strace")
    if program is None:
        raise NotCountedError("strace is not installed")
    command = [program, "-f", "-ttt", "-o", str(file), "-p", str(pid)]
    messages = file.with_suffix(".messages")
    with messages.open("wb") as output:
        process = subprocess.Popen(command, stderr=output)
    try:
        _wait_until_attached(process, messages)
        yield Trace(file)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(_START_SECONDS)


def _wait_until_attached(process: subprocess.Popen[bytes], messages: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while "attached" not in (text := messages.read_text(encoding="utf-8", errors="replace")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise NotCountedError(f"strace cannot follow the web worker: {' '.join(text.split())[:200]}")
        time.sleep(_POLL_SECONDS)


def most_frequent(calls: Sequence[Counter[str]], units: float) -> str:
    total: Counter[str] = sum(calls, Counter())
    return ", ".join(f"{name} {count / units:.2f}" for name, count in total.most_common(6))
