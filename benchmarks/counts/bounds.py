from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("bounds.toml")
_CLOSER = {
    "reads": "strace -f -c -p PID of the process web-1 (VAR_DIR/run/web-1.pid)",
    "writes": "strace -f -c -p PID of the process web-1 (VAR_DIR/run/web-1.pid)",
    "system_calls": "strace -f -c -p PID of the process web-1 (VAR_DIR/run/web-1.pid)",
    "redis_commands": "redis-cli -s VAR_DIR/run/redis.sock MONITOR",
    "redis_commands_of_scripts": "redis-cli -s VAR_DIR/run/redis.sock MONITOR",
    "sql_statements": "ALTER SYSTEM SET log_statement = 'all', then PostgreSQL's log",
    "python_calls": "cProfile around config.supervisor.web_worker.main, sorted by calls",
    "instructions": "valgrind --tool=callgrind, then callgrind_annotate",
    "peak_bytes": "tracemalloc.take_snapshot() while a request waits for its provider",
    "bytes_left": "two of tracemalloc.take_snapshot(), compared after 1,000 requests",
    "objects_collected": "gc.set_debug(gc.DEBUG_SAVEALL), and the types of what gc.garbage holds after some requests",
}
_CLOSER_RECORDS = "python -m benchmarks.record, whose table has the inserts and rows of each table"


@dataclass(frozen=True, slots=True)
class Bound:
    """The maximum of a count, and the reason; `share` and `least` are its own slack."""

    bound: float
    why: str
    least: float | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Slack:
    """The distance of a bound from the count that it was made from: `share` of the count, or `least` if that is
    more."""

    share: float
    least: float

    def bound(self, counted: float, own: Bound | None = None) -> float:
        share = self.share if own is None or own.share is None else own.share
        least = self.least if own is None or own.least is None else own.least
        raised = counted + max(abs(counted) * share, least)
        # More than three digits would pretend to an exactness that nobody needs.
        unit = 10.0 ** (min(max(math.floor(math.log10(raised)) - 2, -2), 6) if raised > 0 else 0)
        return round(math.ceil(round(raised / unit, 6)) * unit, 2)


@dataclass(frozen=True, slots=True)
class Bounds:
    by_workload: Mapping[str, Mapping[str, Bound]]
    slack: Mapping[str, Slack]

    def of(self, workload: str, name: str) -> Bound | None:
        return self.by_workload.get(workload, {}).get(name)

    def broken(self, counted: Mapping[str, Mapping[str, float]]) -> list[str]:
        found = []
        for workload, figures in counted.items():
            for name, value in figures.items():
                bound = self.of(workload, name)
                if bound is None:
                    found.append(f"{workload}.{name}: {value:,.2f} was counted, and {FILE.name} has no bound for it.")
                elif value > bound.bound:
                    closer = _CLOSER.get(name, _CLOSER_RECORDS)
                    found.append(
                        f"{workload}.{name}: {value:,.2f} was counted, the bound is {bound.bound:,g} ({bound.why})"
                        f" To look closer: {closer}."
                    )
        return found

    def uncounted(self, counted: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str]]:
        return [
            (workload, name)
            for workload, bounds in self.by_workload.items()
            for name in bounds
            if name not in counted.get(workload, {})
        ]


def load(file: Path = FILE) -> Bounds:
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    slack = {name: Slack(**value) for name, value in tables.pop("slack").items()}
    return Bounds(
        {workload: {name: Bound(**one) for name, one in table.items()} for workload, table in tables.items()}, slack
    )


def write(counted: Mapping[str, Mapping[str, float]], file: Path = FILE) -> None:
    accepted, workload, lines = load(file), "", []
    for line in file.read_text(encoding="utf-8").splitlines():
        if section := re.match(r"\[(\w+)\]", line):
            workload = section[1]
        name = line.partition(" ")[0]
        value, one = counted.get(workload, {}).get(name), accepted.of(workload, name)
        if value is not None and one is not None:
            bound = accepted.slack.get(name, accepted.slack["other"]).bound(value, one)
            line = re.sub(r"bound = [\d_.]+", f"bound = {_number(bound)}", line, count=1)
        lines.append(line)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _number(value: float) -> str:
    return f"{value:_.0f}" if value >= 100 else f"{value:g}"
