"""The load on every target, and the run of one scenario of one round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import processes
from benchmarks.load import Plan
from benchmarks.targets.base import ROOT, Endpoint, Target

GATEWAY_CORE = 0
LOAD_CORE = 1
STREAM_EVENTS = 100
EVENTS_PER_SECOND = 50.0
MODERATE_RATE = 300.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of load. With `rate` 0 it is a closed loop; with `streams` every connection requests paced streams."""

    name: str
    connections: int
    rate: float = 0.0
    body_bytes: int = 1024
    streams: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one scenario of one round: the driver's result, CPU seconds of the window, and memory after
    it."""

    result: dict[str, Any]
    cpu_seconds: float
    beside_cpu_seconds: float
    resident_megabytes: float

    @property
    def cpu_per_request(self) -> float | None:
        """Returns the CPU time per request in microseconds."""
        done = self.result["requests"]
        return self.cpu_seconds / done * 1e6 if done else None

    @property
    def cpu_per_word(self) -> float | None:
        """Returns the CPU microseconds per streamed chunk; the cost of opening the stream is spread over its chunks."""
        words = self.result["words"]
        return self.cpu_seconds / words * 1e6 if words else None

    @property
    def beside_per_request(self) -> float | None:
        done = self.result["requests"]
        return self.beside_cpu_seconds / done * 1e6 if done else None


def scenarios(connections: int, rate: float = 0.0) -> list[Scenario]:
    """Returns the scenarios. `rate` is the requests per second of the throughput scenario, in place of a closed
    loop."""
    return [
        Scenario("throughput", connections, rate=rate),
        Scenario("large", connections, body_bytes=60_000),
        Scenario("moderate", 16, rate=MODERATE_RATE),
        Scenario("streams-16", 16, streams=True),
        Scenario("streams-64", 64, streams=True),
        Scenario("streams-512", 512, streams=True),
    ]


def run(scenario: Scenario, target: Target, endpoint: Endpoint, *, seconds: float, rate: float) -> Measured:
    """Runs the driver on its core. Raises RuntimeError when it fails."""
    plan = Plan(
        endpoint.port,
        endpoint.path,
        endpoint.model,
        endpoint.headers,
        endpoint.fields,
        connections=scenario.connections,
        seconds=seconds,
        rate=rate,
        body_bytes=scenario.body_bytes,
        stream_events=STREAM_EVENTS if scenario.streams else 0,
        events_per_second=EVENTS_PER_SECOND,
    )
    serving, beside = target.serving(), target.beside()
    command = [sys.executable, "-m", "benchmarks.load", "--plan", json.dumps(asdict(plan))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as driver:
        os.sched_setaffinity(driver.pid, load_cores(target))
        assert driver.stdout is not None  # noqa: S101 - a pipe was asked for
        driver.stdout.readline()
        before, before_beside = processes.cpu_seconds(serving), processes.cpu_seconds(beside)
        driver.stdout.readline()
        used, used_beside = processes.cpu_seconds(serving) - before, processes.cpu_seconds(beside) - before_beside
        last = driver.stdout.readline()
    if not last:
        raise RuntimeError(f"the load driver ended with {driver.returncode}")
    return Measured(json.loads(last), used, used_beside, processes.resident_megabytes(serving))


def load_cores(target: Target) -> set[int]:
    """Returns the driver's cores: the mock's core, or both where two workers use the other one too."""
    return _all_cores() if target.name == "ours-2" else _one(LOAD_CORE)


def pin(target: Target) -> None:
    """Gives the target's serving processes their core; its other processes share the load's."""
    both = target.name == "ours-2"
    processes.pin(target.serving(), _all_cores() if both else _one(GATEWAY_CORE))
    processes.pin(target.beside(), _all_cores() if both else _one(LOAD_CORE))


def _all_cores() -> set[int]:
    return set(range(os.cpu_count() or 1))


def _one(core: int) -> set[int]:
    return {core} & _all_cores() or {0}
