"""`python -m benchmarks.gateway` measures this gateway beside others, interleaved in one run. See
benchmarks/README.md."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from benchmarks import goals, report, scenarios
from benchmarks.report import Outcome
from benchmarks.scenarios import Scenario
from benchmarks.targets.base import ROOT, Endpoint, Target, UnavailableError
from benchmarks.targets.direct import Direct
from benchmarks.targets.ferro import Ferro
from benchmarks.targets.floor import Floor
from benchmarks.targets.litellm import LiteLLM, LiteLLMNative
from benchmarks.targets.ours import Ours, OursAnthropic, OursBefore, OursLimits, OursPrompt, OursTwice
from benchmarks.targets.portkey import Portkey
from benchmarks.targets.python_floor import PythonFloor
from benchmarks.targets.rolter import Rolter
from benchmarks.targets.smg import Smg
from benchmarks.targets.surfaces import SURFACES
from benchmarks.targets.tensorzero import TensorZero

_TARGETS: tuple[type[Target], ...] = (
    Direct,
    Floor,
    PythonFloor,
    Ours,
    OursPrompt,
    OursLimits,
    OursAnthropic,
    OursTwice,
    TensorZero,
    Rolter,
    Smg,
    Ferro,
    Portkey,
    LiteLLM,
    LiteLLMNative,
    OursBefore,
    *SURFACES,
)
TARGETS = {target.name: target for target in _TARGETS}

_QUICK_TARGETS = ["direct", "floor", "ours", "tensorzero"]
_ONLY_BY_NAME = {PythonFloor.name, OursBefore.name, *(target.name for target in SURFACES)}


@dataclass(frozen=True, slots=True)
class Options:
    rounds: int
    seconds: float
    connections: int
    targets: list[str]
    install: bool
    write_docs: bool
    scenarios: list[str]
    rate: float
    goals: bool

    def measures(self, target: str, scenario: str) -> bool:
        if self.goals:
            return (target, scenario) in goals.RUNS
        # Two workers are measured for throughput only.
        wanted = target != OursTwice.name or scenario == "throughput"
        return wanted and (not self.scenarios or scenario in self.scenarios)


class Run:
    def __init__(self, options: Options, workspace: Path) -> None:
        self._options = options
        self._targets = {name: TARGETS[name](workspace) for name in options.targets}
        self._endpoints: dict[str, Endpoint] = {}
        self._dead: set[str] = set()
        self.outcomes = {name: Outcome(target.label) for name, target in self._targets.items()}

    def measure(self, mock_port: int) -> None:
        try:
            self._start_all(mock_port)
            self._warm_up()
            self._rounds()
        finally:
            for target in self._targets.values():
                target.stop()

    def _start_all(self, mock_port: int) -> None:
        for name, target in tqdm(self._targets.items(), desc="starting", unit="target"):
            try:
                if not target.installed and not self._options.install:
                    raise UnavailableError("not installed")
                target.install()
                self.outcomes[name].version = target.version()
                self._endpoints[name] = target.start(mock_port)
                scenarios.pin(target)
            except (UnavailableError, RuntimeError, OSError, subprocess.SubprocessError) as error:
                self.outcomes[name].problem = str(error).replace("\n", " ").replace("|", "/")[:300]
                target.stop()

    def _warm_up(self) -> None:
        for name in tqdm(self._endpoints, desc="warming up", unit="target"):
            for scenario in (Scenario("warm-up", 8), Scenario("warm-up", 8, streams=True)):
                self._run(name, scenario, seconds=min(2.0, self._options.seconds), keep=False)

    def _rounds(self) -> None:
        runs = [
            (name, scenario)
            for scenario in scenarios.scenarios(self._options.connections, self._options.rate)
            for name in self._endpoints
            if self._options.measures(name, scenario.name)
        ]
        with tqdm(total=len(runs) * self._options.rounds, desc="measuring", unit="run") as progress:
            for _ in range(self._options.rounds):
                for name, scenario in runs:
                    progress.set_postfix_str(f"{name} {scenario.name}")
                    self._run(name, scenario, seconds=self._options.seconds, keep=True)
                    progress.update()

    def _run(self, name: str, scenario: Scenario, *, seconds: float, keep: bool) -> None:
        target, outcome = self._targets[name], self.outcomes[name]
        if name in self._dead:
            return
        try:
            measured = scenarios.run(
                scenario, target, self._endpoints[name], seconds=seconds, rate=self._rate(name, scenario)
            )
        except RuntimeError as error:
            outcome.problem = str(error)
            return
        if target.process is not None and target.process.poll() is not None:
            # Half a run of a dead process would pass for a figure, so its figures are dropped.
            outcome.problem = f"its process ended with {target.process.returncode} during {scenario.name}"
            outcome.measured.clear()
            self._dead.add(name)
        elif keep:
            outcome.measured.setdefault(scenario.name, []).append(measured)

    def _rate(self, name: str, scenario: Scenario) -> float:
        if scenario.name == "throughput":
            return scenario.rate
        throughput = self.outcomes[name].throughput
        return min(scenario.rate, throughput / 2) if scenario.rate and throughput else scenario.rate


@contextlib.contextmanager
def mock_upstream() -> Iterator[int]:
    pace = str(scenarios.EVENTS_PER_SECOND)
    command = [sys.executable, "-m", "benchmarks.mock_upstream", "--events-per-second", pace]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        try:
            port = int(process.stdout.readline().split()[1])
            if (os.cpu_count() or 1) > 1:
                os.sched_setaffinity(process.pid, {scenarios.LOAD_CORE})
            yield port
        finally:
            process.terminate()


def parse(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured window of one scenario")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument(
        "--targets", default="", help=f"comma-separated, of {', '.join(TARGETS)}; default: all but other protocols"
    )
    parser.add_argument("--scenario", default="", help="measure only these, such as throughput,streams-64")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="requests per second of throughput for every target; else what it can"
    )
    parser.add_argument("--before", default="", metavar="REVISION", help="measure this revision of ours beside today's")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/ and benchmarks/results/")
    parser.add_argument("--goals", action="store_true", help="measure what the goals need, and print which are met")
    parser.add_argument("--quick", action="store_true", help="one short round of a few: a smoke test, installs nothing")
    options = parser.parse_args(arguments)
    targets = [name for name in options.targets.split(",") if name] or _default_targets(options)
    if options.before:
        OursBefore.revision = options.before
        targets = list(dict.fromkeys([*targets, OursBefore.name]))
    unknown = sorted(set(targets) - set(TARGETS))
    if unknown:
        parser.error(f"unknown targets {', '.join(unknown)}; known: {', '.join(TARGETS)}")
    rounds, seconds = (1, 1.0) if options.quick else (options.rounds, options.seconds)
    docs, only = options.write_docs, [name for name in options.scenario.split(",") if name]
    return Options(
        rounds, seconds, options.connections, targets, not options.quick, docs, only, options.rate, options.goals
    )


def _default_targets(options: argparse.Namespace) -> list[str]:
    if options.goals:
        return goals.TARGETS
    return _QUICK_TARGETS if options.quick else [name for name in TARGETS if name not in _ONLY_BY_NAME]


def main() -> int:
    options = parse(sys.argv[1:])
    # SIGTERM acts like an interrupt: started processes are stopped on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="gateway-benchmark-") as workspace, mock_upstream() as port:
        run = Run(options, Path(workspace))
        run.measure(port)
    settings = (
        f"Medians of {options.rounds} interleaved rounds of {options.seconds:g} s, {options.connections} connections; "
        f"gateway on one core, load and mock on another; moderate rate {scenarios.MODERATE_RATE:g} req/s, or half of "
        "the target's throughput where that is less."
    )
    if options.goals:
        return _report_goals(run.outcomes, settings, write_docs=options.write_docs)
    text = report.markdown(run.outcomes, settings)
    print(text)
    if options.write_docs:
        report.write(ROOT / "docs" / "performance.md", report.markdown(run.outcomes, settings, for_page=True))
        report.write(ROOT / "benchmarks" / "results" / "gateway.md", text)
    return 0


def _report_goals(outcomes: dict[str, Outcome], settings: str, *, write_docs: bool) -> int:
    missing = [f"- {one.label}: not measured: {one.problem}" for one in outcomes.values() if not one.measured]
    remarks = [*missing, *report.problems(outcomes), report.versions(outcomes)]
    text = "\n".join([goals.markdown(outcomes), "", *remarks, "", f"{settings} {report.machine()}"])
    print(text)
    if write_docs:
        report.write(ROOT / "benchmarks" / "results" / "goals.md", text)
    return 0 if goals.all_met(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
