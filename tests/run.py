"""`python -m tests.run`: the whole suite in three parts side by side, each with servers of its own.

Most tests wait: for time-outs, for a minute to close, for a process to start. Which parts there are is a matter of time
alone; together they are the suite, and a test that is in none of them or in two fails the run. Arguments are passed on
to one plain pytest instead.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent
PARTS: tuple[tuple[str, ...], ...] = (
    ("gateway",),
    ("live", "journeys", "rollouts", "prompts", "core", "config", "benchmarks"),
)


def parts() -> list[list[str]]:
    """Folders and files of each part; the last one is whatever the others leave."""
    named = {name for part in PARTS for name in part}
    missing = [name for name in sorted(named) if not (ROOT / name).is_dir()]
    if missing:
        raise SystemExit(f"tests/run.py names what is not there: {', '.join(missing)}")
    rest = sorted(
        path.name
        for path in ROOT.iterdir()
        if ((path.is_dir() and any(path.rglob("test_*.py"))) or path.name.startswith("test_"))
        and path.name not in named
    )
    return [*(list(part) for part in PARTS), rest]


def main() -> int:
    if sys.argv[1:]:
        return subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]])
    started = time.monotonic()
    running = [(part, *_start(part)) for part in parts()]
    failed = 0
    for part, child, printed in running:
        failed = child.wait() or failed
        printed.seek(0)
        seconds = time.monotonic() - started
        sys.stdout.write(
            f"\n===== {' '.join(part)}: exit {child.returncode}, done at {seconds:.0f} s\n{printed.read()}"
        )
        sys.stdout.flush()
    return failed


def _start(part: list[str]) -> tuple[subprocess.Popen[bytes], IO[str]]:
    # A file and no pipe: nobody reads while another part is waited for.
    printed = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - read at the end
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{name}" for name in part)]
    return subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT, cwd=ROOT.parent), printed


if __name__ == "__main__":
    raise SystemExit(main())
