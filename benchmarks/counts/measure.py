"""Counts each workload in batches and takes the least of them: what runs by the clock adds to some batches only."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.counts import callgrind, kernel, stores
from benchmarks.counts.kernel import NotCountedError
from benchmarks.counts.probe import Mode, Probe
from benchmarks.counts.service import Counted, ExtraWorker
from benchmarks.counts.traffic import WORDS, Steps, lanes, streams
from benchmarks.scenarios import LARGE_BYTES, SMALL_BYTES
from benchmarks.targets.base import Endpoint
from benchmarks.waiting import wait_until_shipped

_CHUNKS = WORDS.last - WORDS.first
_RECORDS = 1000

Reading = Mapping[str, float]


@dataclass(slots=True)
class Figures:
    """`missing` holds, by name, why a count could not be taken, and `details` what is behind a count."""

    counted: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    missing: dict[str, str] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)

    def add(self, workload: str, found: Mapping[str, float]) -> None:
        self.counted[workload] |= found


Parts = Sequence[Figures]
"""The figures of each part of a run, in order: stores and reads, system calls, Python, instructions, records."""


def merged(parts: Parts) -> Figures:
    whole = Figures()
    for part in parts:
        for workload, found in part.counted.items():
            whole.add(workload, found)
        whole.missing |= part.missing
        whole.details |= part.details
    return whole


@dataclass(frozen=True, slots=True)
class Counting:
    service: Counted
    steps: Steps
    plain: Endpoint
    limited: Endpoint
    surfaces: Mapping[str, Endpoint]
    prompts: Mapping[str, Endpoint]
    probed: ExtraWorker
    valgrind: ExtraWorker | NotCountedError

    async def run(self, last: Parts = (), is_broken: Callable[[Figures], bool] = lambda part: True) -> Parts:
        counts = (
            self._count_stores_and_reads,
            self._count_system_calls,
            self._count_python,
            self._count_instructions,
            self._count_records,
        )
        parts: list[Figures] = []
        for number, count in enumerate(counts):
            if last and not is_broken(last[number]):
                parts.append(last[number])
                continue
            parts.append(Figures())
            await count(parts[-1])
        return parts

    async def _count_stores_and_reads(self, figures: Figures) -> None:
        from django.conf import settings

        pid = self.service.process_of("web-1").pid
        commands = stores.RedisCommands(settings.REDIS_URL)
        statements = stores.Statements(self.service.environment["DATABASE_URL"], self.service.postgresql_log)

        def read() -> Reading:
            return kernel.reads_and_writes(pid) | commands.read() | statements.read()

        try:
            figures.add("request", await per_request(self.plain, read))
            commands.names.clear()
            figures.add("request_with_limits", await per_request(self.limited, read))
            figures.details["request_with_limits"] = f"commands sent: {dict(commands.names.most_common(4))}"
            # Several requests that wait for the same turn of the loop may share a command.
            for workload, endpoint in (("request_of_64", self.plain), ("request_of_64_with_limits", self.limited)):
                figures.add(workload, await per_request(endpoint, commands.read, batches=7, size=5, connections=64))
            figures.add("chunk", await per_chunk(self.plain, self.steps, lambda: kernel.reads_and_writes(pid)))
            figures.details["statements"] = "; ".join(statements.last) or "none"
        finally:
            commands.close()
            statements.close()

    async def _count_system_calls(self, figures: Figures) -> None:
        pid, folder = self.service.process_of("web-1").pid, self.service.workspace
        for workload in ("request", "request_with_limits", "chunk"):
            file = folder / f"{workload}-{time.monotonic_ns()}.strace"
            try:
                with kernel.traced(pid, file) as trace:

                    def read(trace: kernel.Trace = trace) -> Reading:
                        trace.mark()
                        return {}

                    units = await self._work(workload, read)
            except NotCountedError as error:
                figures.missing["system_calls"] = str(error)
                return
            # Between the batches the benchmark reads its counters, and the worker does nothing.
            batches = trace.between_marks()[::2]
            least = min(sum(batch.values()) for batch in batches)
            figures.add(workload, {"system_calls": least / units})
            figures.details[f"{workload}: system calls"] = kernel.most_frequent(batches, units * len(batches))

    async def _work(self, workload: str, read: Callable[[], Reading]) -> int:
        if workload == "chunk":
            await per_chunk(self.plain, self.steps, read, batches=3)
            return _CHUNKS
        await per_request(self.plain if workload == "request" else self.limited, read, batches=5, size=20)
        return 20

    async def _count_python(self, figures: Figures) -> None:
        probe = Probe(self.probed.probe, self.probed.pid)
        plain, limited = self.probed.endpoint(self.plain), self.probed.endpoint(self.limited)

        def read() -> Reading:
            return {"python_calls": float(probe.calls)}

        probe.set(Mode.CALLS)
        figures.add("request", await per_request(plain, read))
        figures.add("request_with_limits", await per_request(limited, read))
        figures.add("chunk", await per_chunk(plain, self.steps, read))
        for name, endpoint in self.surfaces.items():
            surface = self.probed.endpoint(endpoint)
            figures.add(name, await per_request(surface, read, batches=4))
            figures.add(f"{name}_chunk", await per_chunk(surface, self.steps, read, batches=2))
        probe.set(Mode.OFF)
        for workload, size in (("request", 1024), ("request_of_60_kb", LARGE_BYTES)):
            figures.add(workload, await _memory(plain, probe, size))

    async def _count_instructions(self, figures: Figures) -> None:
        if isinstance(self.valgrind, NotCountedError):
            figures.missing["instructions"] = str(self.valgrind)
            return
        worker = self.valgrind
        worker.wait_ready()
        counter = callgrind.Instructions(worker.pid, worker.folder)
        plain, limited = worker.endpoint(self.plain), worker.endpoint(self.limited)
        total = 0.0

        def read() -> Reading:
            nonlocal total
            total += counter.take()
            return {"instructions": total}

        await per_request(plain, dict, batches=1, size=10)
        counter.switch("on")
        await counter.learn_clock()
        figures.add("request", await per_request(plain, read, batches=5, size=10))
        figures.add("request_with_limits", await per_request(limited, read, batches=5, size=10))
        figures.add("chunk", await per_chunk(plain, self.steps, read, batches=1))
        # These are steadier: a turn of the loop serves many, and one long batch holds what the clock does on average.
        figures.add("request_of_64", await per_request(plain, read, batches=1, size=9, connections=64))
        others = {name: self.surfaces[name] for name in ("messages_native", "responses_native")}
        for name, endpoint in {**others, **self.prompts}.items():
            figures.add(
                f"{name}_of_64",
                await per_request(worker.endpoint(endpoint), read, batches=1, size=9, connections=64),
            )
        figures.add("chunk_of_64", await per_chunk(plain, self.steps, read, batches=1, at_once=64))
        figures.add("kb_beyond_the_first", await _per_kilobyte(plain, read))
        counter.switch("off")

    async def _count_records(self, figures: Figures) -> None:
        from django.conf import settings

        shipper, spool = self.service.process_of("shipper"), Path(settings.SPOOL_DIR)
        await asyncio.to_thread(wait_until_shipped, spool)
        before = stores.inserted()
        shipper.suspend()
        try:
            open_lanes = await lanes(self.plain, 10)
            await asyncio.gather(*(lane.send(_RECORDS // len(open_lanes)) for lane in open_lanes))
        finally:
            shipper.resume()
        await asyncio.to_thread(wait_until_shipped, spool)
        after = stores.inserted()
        for lane in open_lanes:
            lane.connection.abort()
        figures.add("1000_records", {name: after[name] - before[name] for name in after})


async def per_request(
    endpoint: Endpoint,
    read: Callable[[], Reading],
    *,
    batches: int = 9,
    size: int = 20,
    connections: int = 1,
    warm_up: int = 5,
    body_bytes: int = 1024,
) -> dict[str, float]:
    """Returns what a request adds to the readings: the least of batches of `size` requests on each connection.

    Each sends `warm_up` requests first, all in step, so that as many connections to the provider are open.
    """
    open_lanes = await lanes(endpoint, connections, body_bytes=body_bytes)
    for _ in range(warm_up):
        await asyncio.gather(*(lane.send() for lane in open_lanes))
    found: list[Reading] = []
    for _ in range(batches):
        before = read()
        await asyncio.gather(*(lane.send(size) for lane in open_lanes))
        after = read()
        found.append({name: (after[name] - before[name]) / (size * connections) for name in after})
    for lane in open_lanes:
        lane.connection.abort()
    return _least(found)


async def _per_kilobyte(endpoint: Endpoint, read: Callable[[], Reading]) -> dict[str, float]:
    small, large = [
        await per_request(endpoint, read, batches=1, size=20, connections=16, body_bytes=size)
        for size in (SMALL_BYTES, LARGE_BYTES)
    ]
    return {name: (large[name] - small[name]) / ((LARGE_BYTES - SMALL_BYTES) / 1024) for name in small}


async def per_chunk(
    endpoint: Endpoint, steps: Steps, read: Callable[[], Reading], *, batches: int = 5, at_once: int = 1
) -> dict[str, float]:
    """Returns what a chunk in the middle of a stream adds to the readings: the least of batches of `at_once`
    streams.
    """
    found: list[Reading] = []
    for _ in range(batches):
        readings: list[Reading] = []
        await streams(endpoint, steps, partial(_append, readings, read), number=at_once)
        before, after = readings
        found.append({name: (after[name] - before[name]) / (_CHUNKS * at_once) for name in after})
    return _least(found)


def _append(readings: list[Reading], read: Callable[[], Reading]) -> None:
    readings.append(read())


def _least(found: list[Reading]) -> dict[str, float]:
    return {name: min(one[name] for one in found) for name in found[0]}


async def _memory(endpoint: Endpoint, probe: Probe, body_bytes: int) -> dict[str, float]:
    (lane,) = await lanes(endpoint, 1, body_bytes=body_bytes)
    probe.set(Mode.MEMORY)
    # Caches and pools fill with the first requests, which tracing does not know from before.
    await lane.send(40)
    probe.set(Mode.MEMORY)
    peaks, left, collected = [], [], []
    for _ in range(30):
        before = probe.memory[0]
        await lane.send()
        probe.set(Mode.MEMORY)
        peaks.append(probe.memory[1] - before)
    for _ in range(5):
        before, collected_before = probe.memory[0], probe.collected
        await lane.send(20)
        probe.set(Mode.MEMORY)
        left.append((probe.memory[0] - before) / 20)
        collected.append((probe.collected - collected_before) / 20)
    lane.connection.abort()
    return {
        "peak_bytes": min(peaks),
        "bytes_left": statistics.median(left),
        "objects_collected": statistics.median(collected),
    }
