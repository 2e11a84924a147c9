"""`python -m tests.run`: the checks and the whole suite in units, four side by side, each with servers of its own.

Most tests wait: for time-outs, for a minute to close, for a process to start. The division into units and their
order affect only the time; a folder that is in none is a unit of its own. Arguments are passed on to one plain pytest.
The line above what a unit printed has its seconds, and those of the CPU that it and all its processes took; what it
printed ends with its longest tests.

When all units have ended, tests that failed are run once more on the quiet machine, as CPython's `regrtest --rerun`
does. A fault fails twice and so fails the suite; a test that only failed beside others is named in the last lines as
unsteady, to be mended. Failures of more than MAX_RERUNS test functions are a fault in any case, and so is a run that
broke off. All cases of a function count once, since they fail together where a fixture of their module fails.

The services of tests/live run on a read-only root file system. Where the machine does not permit that, the first line
says why, and tests/live/test_read_only_root.py fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live import read_only_root
from tests.migrated import SHARED

ROOT = Path(__file__).resolve().parent
LANES = 4
MAX_RERUNS = 5
# The longest units come first, after folders that no unit names. A folder named here is left out of the one around it.
# Every unit imports Django, makes databases and starts services of its own, so folders with the same needs share one.
UNITS: tuple[tuple[str, ...], ...] = (
    ("live",),
    ("analytics",),
    ("gateway",),
    ("integrations",),
    ("journeys", "fuzzing"),
    ("live/operators", "live/acceptance", "live/agent_panel", "browser"),
    ("analytics/contract", "analytics/deletion", "analytics/reviews", "analytics/sessions"),
    ("console",),
    ("clients/agents",),
    ("clients",),
    ("agent", "openapi", "rights"),
    ("gateway/limits", "gateway/guardrails", "gateway/guardrails_output", "gateway/playground", "gateway/cache"),
    ("integrations/adapters", "integrations/fields", "integrations/mutations"),
    ("analytics/metrics", "analytics/requests", "analytics/scores", "analytics/telemetry", "analytics/traffic"),
    ("rollouts", "prompts", "core", "config", "benchmarks", "documents"),
)
# `make fleet` runs these: they need servers that neither Python nor Node.js brings along.
ELSEWHERE = ("fleet",)


@dataclass(frozen=True)
class Unit:
    """A part of the suite: `paths` below tests/ that one pytest runs, except the paths in `without`."""

    paths: tuple[str, ...]
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join(self.paths)

    def command(self, cache: Path, *options: str) -> list[str]:
        """Returns the words that run it with pytest; `cache` is the folder of that pytest's cache."""
        paths = [f"tests/{path}" for path in self.paths]
        left_out = [f"--ignore=tests/{path}" for path in self.without]
        named = ["-o", f"cache_dir={cache}", "--durations=25"]
        return [sys.executable, "-m", "pytest", *named, *options, *paths, *left_out]


@dataclass(frozen=True)
class Checks:
    """The linters, the types and what else `make static` checks, as one unit. What fails there fails the suite."""

    name: str = "checks"

    def command(self, cache: Path, *options: str) -> list[str]:
        return ["make", "static", f"PYTHON={sys.executable}"]


def units(root: Path = ROOT, named: tuple[tuple[str, ...], ...] = UNITS) -> list[Unit]:
    """Returns the units, which hold every test of `root` once. Raises SystemExit for a missing or repeated name."""
    names = [name for unit in named for name in unit]
    wrong = sorted({name for name in names if not (root / name).is_dir() or names.count(name) > 1})
    if wrong:
        raise SystemExit(f"tests/run.py names what is not there, or twice: {', '.join(wrong)}")
    others = {*names, *ELSEWHERE}
    rest = sorted(path.name for path in root.iterdir() if _holds_tests(path) and path.name not in others)
    return [_unit((name,), names) for name in rest] + [_unit(unit, names) for unit in named]


@dataclass(frozen=True)
class Run:
    """A unit that has run, with its exit code, the folder of its pytest's cache, and what it printed."""

    unit: Unit | Checks
    code: int
    cache: Path
    printed: str = ""

    @property
    def failed(self) -> list[str]:
        """Returns the ids of the tests that failed or could not be set up."""
        cache_path = self.cache / "v" / "cache" / "lastfailed"
        return sorted(json.loads(cache_path.read_text())) if self.code and cache_path.exists() else []

    @property
    def reasons(self) -> list[str]:
        """Returns the lines of pytest's short summary on failed tests, one of each test function; if there are none,
        the exit code."""
        # Above the summary, lines of captured logs begin with ERROR too.
        _, _, summary = self.printed.partition("= short test summary info =")
        lines = [line for line in summary.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        first = {_function(line): line for line in reversed(lines)}
        return list(first.values())[::-1] or [f"{self.unit.name}: exit {self.code} without a failed test"]


def main() -> int:
    if sys.argv[1:]:
        return subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]])
    if reason := read_only_root.refusal():
        sys.stdout.write(f"===== no read-only root for the services of tests/live: {reason}\n")
    with tempfile.TemporaryDirectory(prefix="gateway-tests-") as folder:
        _share_tables(Path(folder) / "tables")
        return verdict(_run_all(Path(folder)), _run_again)


def _share_tables(folder: Path) -> None:
    """Has the units copy tables that are made once. Where that fails, each makes its own and says what is wrong."""
    command = [sys.executable, "-m", "tests.migrated", str(folder)]
    # The files of the engine that makes the tables stay in the folder, as do those of the settings.
    if subprocess.call(command, cwd=ROOT.parent, env={**os.environ, "VAR_DIR": str(folder)}) == 0:
        os.environ[SHARED] = str(folder)


def verdict(runs: list[Run], run_again: Callable[[Run], int]) -> int:
    """Returns the suite's exit code. `run_again` runs the failed tests of a unit alone and returns their exit code."""
    broken = [run for run in runs if run.code]
    failed = {_function(name) for run in broken for name in run.failed}
    reasons = [line for run in broken for line in run.reasons]
    unclear = any(run.code != pytest.ExitCode.TESTS_FAILED or not run.failed for run in broken)
    if unclear or len(failed) > MAX_RERUNS or any(run_again(run) for run in broken):
        sys.stdout.write("\n".join(["", "===== failed:", *reasons, ""]))
        return max((run.code for run in broken), key=abs)
    if failed:
        sys.stdout.write("\n".join(["", "===== unsteady, failed beside others and passed alone:", *reasons, ""]))
    return 0


def _function(name: str) -> str:
    """Returns the test function of a test's id or of its line in pytest's short summary, without the case."""
    return name.partition("[")[0].partition(" - ")[0]


def _run_all(caches: Path) -> list[Run]:
    started = time.monotonic()
    # The checks come first: a fault there is the most common one, and is read while the tests still run.
    waiting = deque[tuple[int, Unit | Checks]](enumerate([Checks(), *units()]))
    runs: list[Run] = []

    def lane() -> None:
        while waiting:
            try:
                number, unit = waiting.popleft()
            except IndexError:  # Another lane has taken the last unit.
                return
            cache = caches / str(number)
            runs.append(_run(unit, cache, started))

    lanes = [threading.Thread(target=lane) for _ in range(LANES)]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()
    return runs


def _run_again(run: Run) -> int:
    return _run(run.unit, run.cache, time.monotonic(), "--last-failed", "--last-failed-no-failures=none").code


def _run(unit: Unit | Checks, cache: Path, started: float, *options: str) -> Run:
    """Runs a unit, and prints its output at the end."""
    began = time.monotonic()
    # The output goes to a file, since a pipe that is read only at the end would fill up.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        child = subprocess.Popen(
            unit.command(cache, *options),
            stdout=printed,
            stderr=subprocess.STDOUT,
            cwd=ROOT.parent,
            env=environment(unit),
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        now = time.monotonic()
        printed.seek(0)
        run = Run(unit, child.returncode, cache, printed.read())
    sys.stdout.write(
        f"\n===== {unit.name}: exit {run.code} after {now - began:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of CPU, at {now - started:.0f} s\n{run.printed}"
    )
    sys.stdout.flush()
    return run


def environment(unit: Unit | Checks) -> dict[str, str]:
    """Returns the variables of a unit."""
    # The variables of a make around this one would change what the make of the checks does.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    is_live = isinstance(unit, Unit) and any(path.partition("/")[0] == "live" for path in unit.paths)
    return {**kept, read_only_root.ASKED: "1"} if is_live and not read_only_root.refusal() else kept


def _unit(paths: tuple[str, ...], names: list[str]) -> Unit:
    return Unit(paths, tuple(name for name in names if any(name.startswith(f"{path}/") for path in paths)))


def _holds_tests(path: Path) -> bool:
    return any(path.rglob("test_*.py")) if path.is_dir() else path.match("test_*.py")


if __name__ == "__main__":
    raise SystemExit(main())
