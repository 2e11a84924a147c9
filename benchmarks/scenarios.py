from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from benchmarks import processes
from benchmarks.load import Plan
from benchmarks.targets.base import ROOT, Endpoint, Target

GATEWAY_CORE = 0
LOAD_CORE = 1
STREAM_EVENTS = 100
EVENTS_PER_SECOND = 50.0
MODERATE_RATE = 300.0
MANY_STREAMS = 1024
BURST = 128
SMALL_BYTES = 1024
LARGE_BYTES = 60_000

_STORED_SECONDS = 180.0
_POLL_SECONDS = 0.2
_QUIET_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    connections: int
    rate: float = 0.0
    body_bytes: int = SMALL_BYTES
    streams: bool = False
    burst: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """`result` is the driver's. `cpu_seconds` are those of the serving processes in its window. `beside` has those of
    the target's other processes by role, from before the first request until they have nothing left to do."""

    result: dict[str, Any]
    cpu_seconds: float
    beside: dict[str, float]
    resident_megabytes: float

    @property
    def cpu_per_request(self) -> float | None:
        done = self.result["requests"]
        return self.cpu_seconds / done * 1e6 if done else None

    @property
    def cpu_per_word(self) -> float | None:
        """The cost of opening the stream is spread over its chunks."""
        words = self.result["words"]
        return self.cpu_seconds / words * 1e6 if words else None

    @property
    def delivered(self) -> float:
        words: float = self.result["words_per_second"]
        return min(1.0, words / (MANY_STREAMS * EVENTS_PER_SECOND))

    def beside_per_request(self) -> dict[str, float]:
        """Divides by every request sent, because each left work."""
        sent = self.result["sent"]
        return {role: seconds / sent * 1e6 for role, seconds in self.beside.items()} if sent else {}

    @property
    def whole_per_request(self) -> float | None:
        serving = self.cpu_per_request
        return None if serving is None else serving + sum(self.beside_per_request().values())


def scenarios(connections: int, rate: float = 0.0) -> list[Scenario]:
    return [
        Scenario("throughput", connections, rate=rate),
        Scenario("large", connections, body_bytes=LARGE_BYTES),
        Scenario("moderate", 16, rate=MODERATE_RATE),
        Scenario("one", 1),
        Scenario("burst", 16, burst=BURST),
        Scenario("streams-16", 16, streams=True),
        Scenario("streams-64", 64, streams=True),
        Scenario("streams-many", MANY_STREAMS, streams=True),
    ]


def run(scenario: Scenario, target: Target, endpoint: Endpoint, *, seconds: float, rate: float) -> Measured:
    """Runs the driver on its core, and returns when the target has done all that its requests left behind. Raises
    RuntimeError if the driver fails or the target does not come to rest."""
    plan = Plan(
        endpoint.port,
        endpoint.path,
        endpoint.model,
        endpoint.headers,
        endpoint.fields,
        connections=scenario.connections,
        burst=scenario.burst,
        seconds=seconds,
        rate=rate,
        body_bytes=scenario.body_bytes,
        stream_events=STREAM_EVENTS if scenario.streams else 0,
        events_per_second=EVENTS_PER_SECOND,
    )
    serving, beside = target.serving(), target.beside()
    before_beside = _cpu_seconds(beside)
    command = [sys.executable, "-m", "benchmarks.load", "--plan", json.dumps(asdict(plan))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as driver:
        os.sched_setaffinity(driver.pid, load_cores(target))
        assert driver.stdout is not None  # noqa: S101 - a pipe was asked for
        driver.stdout.readline()
        before = processes.cpu_seconds(serving)
        driver.stdout.readline()
        used = processes.cpu_seconds(serving) - before
        last = driver.stdout.readline()
    if not last:
        raise RuntimeError(f"the load driver ended with {driver.returncode}")
    resident = processes.resident_megabytes(serving)
    _wait_until_at_rest(target, beside)
    used_beside = {role: seconds - before_beside[role] for role, seconds in _cpu_seconds(beside).items()}
    return Measured(json.loads(last), used, used_beside, resident)


def _cpu_seconds(beside: dict[str, list[psutil.Process]]) -> dict[str, float]:
    return {role: processes.cpu_seconds(of_role) for role, of_role in beside.items()}


def _wait_until_at_rest(target: Target, beside: dict[str, list[psutil.Process]]) -> None:
    """Waits until the target owes no work and its other processes use next to nothing: merges after inserts belong to
    the price of a request, and would disturb the next measurement. Raises RuntimeError after minutes."""
    every = [one for of_role in beside.values() for one in of_role]
    deadline, quiet = time.monotonic() + _STORED_SECONDS, not every
    while not quiet:
        if time.monotonic() > deadline:
            raise RuntimeError(f"its records were not stored within {_STORED_SECONDS:.0f} s")
        before, began = processes.cpu_seconds(every), time.monotonic()
        time.sleep(_POLL_SECONDS)
        share = (processes.cpu_seconds(every) - before) / (time.monotonic() - began)
        quiet = share < _QUIET_SHARE and not target.has_work_left()


def load_cores(target: Target) -> set[int]:
    return _all_cores() if target.name == "ours-2" else _one(LOAD_CORE)


def pin(target: Target) -> None:
    both = target.name == "ours-2"
    processes.pin(target.serving(), _all_cores() if both else _one(GATEWAY_CORE))
    beside = [one for of_role in target.beside().values() for one in of_role]
    processes.pin(beside, _all_cores() if both else _one(LOAD_CORE))


def _all_cores() -> set[int]:
    return set(range(os.cpu_count() or 1))


def _one(core: int) -> set[int]:
    return {core} & _all_cores() or {0}
