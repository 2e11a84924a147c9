"""What the suite and the product may weigh: `tests/budgets.toml` has the CPU of each unit, and the lines of each app.

`python -m tests.budgets USED` writes what a run has used, and lowers budgets that became too wide; `python -m
tests.budgets --lines` writes the lines of today.

A unit is a folder below tests/. `make test` fails when a unit takes more than a third above its budget, measured
against the median of all units: on a slower machine, or with busy neighbours, the same work takes more CPU. What is
above one and a half times that by which a fixed piece of work became slower (`tests/pace.py`), the suite itself takes.
tests/config/test_budgets.py fails when an app has more lines than its budget. Budgets are raised by hand, in a commit
that says what for.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(__file__).with_name("budgets.toml")
APPS = ("config", "core", "integrations", "analytics", "prompts", "rollouts", "gateway", "agent", "console")
COUNTED = (*APPS, "clients", "benchmarks", "tests")
# Folders whose subfolders are units of their own.
_DIVIDED = frozenset({"analytics", "clients", "gateway", "integrations", "live"})
# What all lanes use and no unit asks for more than another: stores, and services of the session.
STORES = "stores"
CHECKS, COLLECTION, TABLES = "checks", "collection", "tables"
# The first depends on what mypy remembers, the second on which lane comes first: they are shown and not bounded.
_VARYING = frozenset({CHECKS, STORES})
# A unit may take a third more than its budget; small ones vary by more, for the work that a store does later.
_TOLERANCE, _SMALL = 4 / 3, 6.0
# By how much all units together may be above what the pace of the machine explains.
_SLOWEST = 1.5
# Units below so many seconds of CPU vary too much to tell how fast the machine is, and so do fewer units.
_TELLING_SECONDS, _TELLING_UNITS = 10, 3
# A budget is at most a tenth above what was measured.
_MARGIN = 1.1
# Modules below it need no known place in the queue.
_LONG_SECONDS = 4.0


@dataclass
class Used:
    """Seconds of CPU and of wall time by unit, and the same two by module."""

    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    wall: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    modules: dict[str, tuple[float, float]] = field(default_factory=dict)
    # The median CPU seconds of a fixed piece of work while the suite ran.
    pace: float = 0.0

    def add(self, unit: str, module: str, cpu: float, wall: float) -> None:
        self.cpu[unit] += cpu
        self.wall[unit] += wall
        if module:
            self.modules[module] = (cpu, wall)

    def write(self, path: str) -> None:
        Path(path).write_text(json.dumps(vars(self)))

    @classmethod
    def read(cls, path: str) -> Used:
        found = json.loads(Path(path).read_text())
        modules = {module: (cpu, wall) for module, (cpu, wall) in found["modules"].items()}
        return cls(defaultdict(float, found["cpu"]), defaultdict(float, found["wall"]), modules, found["pace"])

    def table(self) -> str:
        budgets = read()["cpu"]
        rows = [
            f"{unit:28}{used:8.0f}{budgets.get(unit, {}).get('budget', 0):8}{self.wall[unit]:8.0f}"
            for unit, used in sorted(self.cpu.items(), key=lambda pair: -pair[1])
        ]
        total = f"{'all':28}{sum(self.cpu.values()):8.0f}{sum(row['budget'] for row in budgets.values()):8}"
        speed = (
            f"Units may take {slowness_of(self):.2f} times their budgets and a third: so busy is the machine, whose"
            f" pace is {self.pace * 1000:.1f} ms."
        )
        return "\n".join([f"{'unit':28}{'CPU s':>8}{'budget':>8}{'wall s':>8}", *rows, total, speed])


def folder_of(path: str) -> str:
    return "/".join(path.split("/")[1:-1])


def unit_of(module: str) -> str:
    folders = folder_of(module).split("/")
    return "/".join(folders[: 2 if folders[0] in _DIVIDED else 1]) or "tests"


def read() -> dict[str, Any]:
    return _parsed(FILE)


@cache
def _parsed(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def known_seconds() -> Mapping[str, float]:
    found: dict[str, float] = read()["long"]
    return found


def exceeded(used: Used) -> list[str]:
    budgets = read()["cpu"]
    slowness = slowness_of(used)
    found = []
    for unit, seconds in sorted(used.cpu.items()):
        budget = budgets.get(unit, {}).get("budget", 0)
        if unit not in _VARYING and seconds > max(budget * _TOLERANCE, budget + _SMALL) * slowness:
            found.append(
                f"{unit} took {seconds:.0f} s of CPU and its budget is {budget}: make its tests cheaper, or raise"
                " its budget in tests/budgets.toml in a commit that says what the seconds buy."
            )
    return found


def slowness_of(used: Used) -> float:
    """Returns the median ratio of the units' CPU to their budgets, from 1.0 up to 1.5 times the machine's own pace."""
    known = read()
    budgets, slower = known["cpu"], max(used.pace / known["pace"]["seconds"], 1.0)
    ratios = [
        seconds / budgets[unit]["budget"]
        for unit, seconds in used.cpu.items()
        if unit in budgets and unit not in _VARYING and budgets[unit]["budget"] >= _TELLING_SECONDS
    ]
    return min(max(median(ratios), 1.0), _SLOWEST * slower) if len(ratios) >= _TELLING_UNITS else 1.0


def too_long(lines: Mapping[str, int]) -> list[str]:
    budgets = read()["lines"]
    found = []
    for app, count in lines.items():
        if count > budgets[app]:
            found.append(
                f"{app} has {count} lines of Python and its budget is {budgets[app]}: say something once that stands"
                " twice, or raise the budget in tests/budgets.toml in a commit that says what the lines buy."
            )
        elif budgets[app] > count * _MARGIN:
            found.append(f"{app} has {count} lines of Python and its budget is {budgets[app]}: run `make budgets`.")
    return found


def count_lines(apps: Iterable[str] = COUNTED) -> dict[str, int]:
    return {app: sum(map(_lines, tracked(app))) for app in apps}


def tracked(app: str) -> list[Path]:
    words = ["git", "ls-files", "-z", "--", f"{app}/*.py"]
    printed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in printed.split("\0") if name and (path := ROOT / name).is_file()]


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def write(
    cpu: Mapping[str, Mapping[str, int]], lines: Mapping[str, int], long: Mapping[str, float], pace: float
) -> None:
    text = [
        "# What the suite and the product may weigh, and what they weighed last (tests/budgets.py).",
        "# Budgets fall by `make budgets`; a commit that raises one says what it buys.",
        "",
        "# Lines of Python by app.",
        "[lines]",
        *(f"{app} = {count}" for app, count in lines.items()),
        "",
        "# Seconds of CPU of a fixed piece of work (tests/pace.py), on the machine that the budgets are of.",
        "[pace]",
        f"seconds = {pace}",
        "",
        "# Seconds of CPU of all processes, on two cores, and of wall time, by unit.",
        "[cpu]",
        *(
            f'"{unit}" = {{ budget = {row["budget"]}, cpu = {row["cpu"]}, wall = {row["wall"]} }}'
            for unit, row in sorted(cpu.items())
        ),
        "",
        "# Seconds of the modules that the queue takes first.",
        "[long]",
        *(f'"{module}" = {seconds:.0f}' for module, seconds in sorted(long.items(), key=lambda pair: -pair[1])),
        "",
    ]
    FILE.write_text("\n".join(text), encoding="utf-8")
    _parsed.cache_clear()


def taken_over(used: Used) -> dict[str, dict[str, int]]:
    budgets = read()["cpu"]
    rows = {}
    for unit, seconds in used.cpu.items():
        budget = max(1, math.ceil(seconds * _MARGIN))
        former = budgets.get(unit, {}).get("budget", budget)
        rows[unit] = {"budget": min(former, budget), "cpu": round(seconds), "wall": round(used.wall[unit])}
    return rows


def main() -> None:
    known = read()
    lines = {app: min(count, known["lines"].get(app, count)) for app, count in count_lines().items()}
    if sys.argv[1:] == ["--lines"]:
        write(known["cpu"], lines, known["long"], known["pace"]["seconds"])
        return
    used = Used.read(sys.argv[1])
    long = {module: wall for module, (_, wall) in used.modules.items() if wall >= _LONG_SECONDS}
    write(taken_over(used), lines, long, known["pace"]["seconds"])


if __name__ == "__main__":
    main()
