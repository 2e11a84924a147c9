"""`python -m benchmarks.cpu_profile` says where the web worker's CPU time goes, beside that of a proxy in Python that
only parses and decodes. It needs `perf` (Debian's package linux-perf)."""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from benchmarks import report, scenarios
from benchmarks.gateway import mock_upstream
from benchmarks.scenarios import Measured, Scenario
from benchmarks.targets.base import Endpoint, Target
from benchmarks.targets.ours import Ours
from benchmarks.targets.python_floor import PythonFloor

_SAMPLES_PER_SECOND = 2000
# The beginnings of the names of shared objects, as perf prints them.
_PARTS = {
    "[kernel": "kernel",
    "libpython": "CPython",
    "python": "CPython",
    "loop.": "uvloop",
    "parser.": "httptools",
    "_core.": "msgspec",
}
_OTHER = "other libraries"
_COLUMNS = ["all", *dict.fromkeys(_PARTS.values()), _OTHER]


def shares(printed: str) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for line in printed.splitlines():
        percent, _, name = line.strip().partition("%")
        if name and not line.startswith("#"):
            found[_part(name.strip())] += float(percent) / 100
    return dict(found)


def _part(shared_object: str) -> str:
    return next((part for start, part in _PARTS.items() if shared_object.startswith(start)), _OTHER)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_profile", description=__doc__)
    parser.add_argument("--scenario", default="throughput", choices=[one.name for one in scenarios.scenarios(64)])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    if shutil.which("perf") is None:
        print("perf is not installed (Debian's package is linux-perf)", file=sys.stderr)
        return 1
    (scenario,) = (one for one in scenarios.scenarios(64) if one.name == options.scenario)
    unit = "chunk" if scenario.streams else "request"
    print(f"| µs per {unit} | {' | '.join(_COLUMNS)} |")
    print("|---" * (len(_COLUMNS) + 1) + "|")
    with tempfile.TemporaryDirectory(prefix="cpu-profile-") as folder, mock_upstream() as mock_port:
        for target in (PythonFloor(Path(folder)), Ours(Path(folder))):
            print(_row(target, mock_port, scenario, options.rounds, options.seconds), flush=True)
    print(f"\n{scenario.name}, medians of {options.rounds} rounds of {options.seconds:g} s. {report.machine()}")
    return 0


def _row(target: Target, mock_port: int, scenario: Scenario, rounds: int, seconds: float) -> str:
    try:
        endpoint = target.start(mock_port)
        scenarios.pin(target)
        scenarios.run(Scenario("warm-up", 8, streams=scenario.streams), target, endpoint, seconds=2.0, rate=0.0)
        found = [_profiled(target, endpoint, scenario, seconds) for _ in range(rounds)]
    finally:
        target.stop()
    medians = (statistics.median(one.get(column, 0.0) for one in found) for column in _COLUMNS)
    return f"| {target.label} | {' | '.join(f'{median:.1f}' for median in medians)} |"


def _profiled(target: Target, endpoint: Endpoint, scenario: Scenario, seconds: float) -> Mapping[str, float]:
    (process, *_) = target.serving()
    with tempfile.NamedTemporaryFile(prefix="cpu-profile-") as samples:
        command = ["perf", "record", "-e", "cpu-clock", "-F", str(_SAMPLES_PER_SECOND), "-p", str(process.pid)]
        with subprocess.Popen([*command, "-o", samples.name], stderr=subprocess.DEVNULL) as recording:
            try:
                measured = scenarios.run(scenario, target, endpoint, seconds=seconds, rate=scenario.rate)
            finally:
                recording.terminate()
        read = ["perf", "report", "-i", samples.name, "--stdio", "--no-children", "--sort", "dso"]
        printed = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    cost = _cost(measured, scenario)
    return {"all": cost, **{part: share * cost for part, share in shares(printed).items()}}


def _cost(measured: Measured, scenario: Scenario) -> float:
    cost = measured.cpu_per_word if scenario.streams else measured.cpu_per_request
    if cost is None:
        raise RuntimeError("nothing was served")
    return cost


if __name__ == "__main__":
    sys.exit(main())
