"""`python -m tests.run`: the checks and the whole suite, in lanes side by side, each with its own servers.

Most tests wait (for time-outs, for a minute to close, for a process to start), so there are more lanes than cores. The
last lines have each unit's CPU seconds beside its budget (`tests/budgets.py`); a unit more than a third above it fails
the suite. Arguments are passed on to one plain pytest.

At the end, failed tests run once more on the quiet machine, as CPython's `regrtest --rerun` does. A fault fails twice
and so fails the suite; a test that only failed beside others is named in the last lines as unsteady, to be mended.
Failures of more than MAX_RERUNS test functions fail the suite in any case, and so does a run that broke off. All cases
of a function count once, since they fail together where a fixture of their module fails.

The services of tests/live run on a read-only root file system. Where the machine does not permit that, the first line
says why, and tests/live/test_read_only_root.py fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import pace
from tests.budgets import CHECKS, TABLES, Used, exceeded
from tests.live import read_only_root
from tests.migrated import SHARED
from tests.night import NIGHT

ROOT = Path(__file__).resolve().parent
LANES = 5
MAX_RERUNS = 5
# The file that gets what the run has used, for `make budgets`.
USED = ROOT.parent / ".pytest_cache" / "used.json"


@dataclass(frozen=True)
class Ended:
    name: str
    code: int
    cpu: float
    wall: float
    printed: str = ""


def main() -> int:
    if sys.argv[1:]:
        return subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]])
    if reason := read_only_root.refusal():
        sys.stdout.write(f"===== no read-only root for the services of tests/live: {reason}\n")
    with tempfile.TemporaryDirectory(prefix="gateway-tests-") as folder, pace.measured() as measured:
        return _run_all(Path(folder), measured)


def _run_all(folder: Path, measured: pace.Pace) -> int:
    # The checks come first: a fault there is the most common one, and is read while the tests still run.
    checks = Program(CHECKS, check_command(), folder / "checks")
    tables = _share_tables(folder / "tables")
    tests = Program("tests", pytest_command(folder, "--lanes", str(LANES), "--used", str(folder / "used.json")))
    ended = checks.wait()
    sys.stdout.write(f"\n===== {ended.name}: exit {ended.code} after {ended.wall:.0f} s\n{ended.printed}\n")
    suite = tests.wait()
    failed = failed_tests(folder)
    wrong = _weigh(folder / "used.json", [tables, ended], measured)
    return verdict(suite.code, failed, lambda: _run_again(folder)) or ended.code or wrong


def check_command() -> list[str]:
    return ["make", "static", f"PYTHON={sys.executable}"]


def pytest_command(cache: Path, *options: str) -> list[str]:
    named = ["-q", "-o", f"cache_dir={cache}", "--durations=40"]
    return [sys.executable, "-m", "pytest", *named, *options]


class Program:
    def __init__(self, name: str, command: list[str], output: Path | None = None) -> None:
        self.name, self._output, self._began = name, output, time.monotonic()
        with (output or Path(os.devnull)).open("wb") as file:
            streams = {"stdout": file, "stderr": subprocess.STDOUT} if output else {}
            self._child = subprocess.Popen(command, cwd=ROOT.parent, env=environment(), **streams)  # type: ignore[call-overload]

    def wait(self) -> Ended:
        _, status, used = os.wait4(self._child.pid, 0)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        printed = self._output.read_text(errors="replace") if self._output else ""
        seconds = used.ru_utime + used.ru_stime
        return Ended(self.name, self._child.returncode, seconds, time.monotonic() - self._began, printed)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def _share_tables(folder: Path) -> Ended:
    """Lanes copy tables that are made once. If that fails, each makes its own and says what is wrong."""
    # The files of the engine that makes the tables stay in the folder, as do those of the settings.
    os.environ["VAR_DIR"] = str(folder)
    made = Program(TABLES, [sys.executable, "-m", "tests.migrated", str(folder)]).wait()
    del os.environ["VAR_DIR"]
    if made.code == 0:
        os.environ[SHARED] = str(folder)
    return made


def failed_tests(cache: Path) -> list[str]:
    path = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_text())) if path.exists() else []


def verdict(code: int, failed: list[str], run_again: Callable[[], int]) -> int:
    if code == 0:
        return 0
    functions = sorted({name.partition("[")[0] for name in failed})
    unclear = code != pytest.ExitCode.TESTS_FAILED or not failed
    if unclear or len(functions) > MAX_RERUNS or run_again():
        sys.stdout.write("\n".join(["", "===== failed:", *functions, ""]))
        return code
    sys.stdout.write("\n".join(["", "===== unsteady, failed beside others and passed alone:", *functions, ""]))
    return 0


def _run_again(cache: Path) -> int:
    return Program("again", pytest_command(cache, "--last-failed", "--last-failed-no-failures=none")).wait().code


def _weigh(path: Path, others: list[Ended], measured: pace.Pace) -> int:
    if not path.exists():  # The tests broke off.
        return 0
    used = Used.read(str(path))
    for ended in others:
        used.add(ended.name, "", ended.cpu, ended.wall)
    used.pace = measured.median
    USED.parent.mkdir(exist_ok=True)
    used.write(str(USED))
    # The budgets are the day's.
    wrong = [] if NIGHT else exceeded(used)
    sys.stdout.write("\n".join(["", used.table(), "", *wrong, ""]))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
