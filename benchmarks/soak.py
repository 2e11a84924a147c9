"""`python -m benchmarks.soak` sends steady traffic for minutes or hours, and checks bounds on the service's resources.

A share of the requests streams, a share of the streams is left in the middle, and some requests and answers are large.
Memory and open files of every process and the bytes of the spool are sampled all the while. Exit status 1 means that
something grew beyond its bound, that a process was replaced, or that the log does not hold exactly the answered
requests. See README.md here.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from analytics.spool.writer import DEFAULT_SEGMENT_BYTES
from benchmarks import payloads, report
from benchmarks.gateway import mock_upstream
from benchmarks.propagation import OursManaged
from benchmarks.targets.base import Endpoint

# The limits of growth from the first quarter after the warm-up to the last one.
MAX_GROWTH = 0.10
MAX_GROWTH_BYTES = 24 * 1024 * 1024
MAX_MORE_FILES = 24
# The engine opens the files of its merges: one per column in larger parts, so that it has 80 to 440 open files from one
# moment to the next, however long it has run.
MAX_ENGINE_FILES = 1024
# The bytes that may remain in the spool when all is shipped: for each of the two workers the open segment, and one
# reserved.
MAX_SPOOL_BYTES = 4 * DEFAULT_SEGMENT_BYTES
_WARM_UP = 0.25
_SETTLE_SECONDS = 60.0
_STREAM_WORDS = 25
_LARGE_BYTES = 4_000_000
_LARGE_ANSWER_BYTES = 64_000_000


@dataclass(frozen=True)
class Sample:
    pid: int
    pss: int
    files: int


@dataclass
class Watched:
    roles: dict[str, list[Sample]] = field(default_factory=dict)
    spool: list[int] = field(default_factory=list)


@dataclass
class Sent:
    """`abandoned` are those of the `answered` requests that clients left in the middle."""

    answered: int = 0
    abandoned: int = 0
    failed: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        mock_port = stack.enter_context(mock_upstream())
        target = OursManaged(workspace)
        stack.callback(target.stop)
        endpoint = target.start(mock_port)
        var_dir = target.workspace / "var"
        watched, sent = asyncio.run(_soak(endpoint, var_dir, options.seconds, options.rate))
        recorded = asyncio.run(_recorded(endpoint, target.headers, sent))
        watched.spool.append(_spool_bytes(var_dir))
    sys.stdout.write(table(watched, sent, recorded) + f"\n\n{report.machine()}\n")
    found = problems(watched, sent, recorded)
    sys.stdout.write("".join(f"out of bounds: {problem}\n" for problem in found))
    return 1 if found else 0


def problems(watched: Watched, sent: Sent, recorded: int) -> list[str]:
    found = [problem for role, samples in watched.roles.items() for problem in _problems_of(role, samples)]
    if watched.spool and watched.spool[-1] > MAX_SPOOL_BYTES:
        found.append(f"the spool holds {watched.spool[-1]:,} bytes when all should be shipped")
    if sent.failed:
        found.append(f"{len(sent.failed)} requests failed, the first with {sent.failed[0]}")
    if recorded != sent.answered + sent.abandoned:
        found.append(f"{sent.answered} answered and {sent.abandoned} abandoned, {recorded} recorded")
    return found


def table(watched: Watched, sent: Sent, recorded: int) -> str:
    peak, last = max(watched.spool, default=0), watched.spool[-1] if watched.spool else 0
    lines = [
        f"{sent.answered:,} answered, {sent.abandoned:,} abandoned, {len(sent.failed):,} failed, {recorded:,} recorded",
        f"spool: {peak:,} bytes at most, {last:,} at the end",
        "",
        "| Process | PSS MB begin | end | most | files begin | end |",
        "|---|---|---|---|---|---|",
    ]
    for role, samples in sorted(watched.roles.items()):
        begin, end = _quarters(samples)
        megabytes = [_median_pss(begin), _median_pss(end), max(sample.pss for sample in samples)]
        shown = " | ".join(f"{value / 2**20:,.0f}" for value in megabytes)
        lines.append(f"| {role} | {shown} | {_median_files(begin):,.0f} | {_median_files(end):,.0f} |")
    return "\n".join(lines)


def _problems_of(role: str, samples: Sequence[Sample]) -> list[str]:
    begin, end = _quarters(samples)
    found = []
    if len({sample.pid for sample in samples}) > 1:
        found.append(f"{role} was replaced")
    before, after = _median_pss(begin), _median_pss(end)
    if after > max(before * (1 + MAX_GROWTH), before + MAX_GROWTH_BYTES):
        found.append(f"{role} grew from {before / 2**20:.0f} to {after / 2**20:.0f} MB")
    max_files = MAX_ENGINE_FILES if role == "engine" else _median_files(begin) + MAX_MORE_FILES
    if _median_files(end) > max_files:
        found.append(f"{role} has {_median_files(end):.0f} files open, {_median_files(begin):.0f} at the beginning")
    return found


def _quarters(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]]:
    warm = samples[int(len(samples) * _WARM_UP) :]
    size = max(1, len(warm) // 4)
    return warm[:size], warm[-size:]


def _median_pss(samples: Sequence[Sample]) -> float:
    return statistics.median(sample.pss for sample in samples)


def _median_files(samples: Sequence[Sample]) -> float:
    return statistics.median(sample.files for sample in samples)


async def _soak(endpoint: Endpoint, var_dir: Path, seconds: float, rate: float) -> tuple[Watched, Sent]:
    sent, watched = Sent(), Watched()
    watching = asyncio.create_task(_watch(watched, var_dir, seconds))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=endpoint.headers) as session:
        running: set[asyncio.Task[None]] = set()
        started = time.monotonic()
        number = 0
        while time.monotonic() - started < seconds:
            task = asyncio.create_task(_ask(session, endpoint, number, sent))
            running.add(task)
            task.add_done_callback(running.discard)
            number += 1
            await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
        await asyncio.gather(*running)
    await watching
    return watched, sent


async def _ask(session: aiohttp.ClientSession, endpoint: Endpoint, number: int, sent: Sent) -> None:
    """Every second request streams, every tenth is left after its first bytes, one of 500 is large, and one of 1,000
    has a large answer."""
    streams, leaves = number % 2 == 0, number % 10 == 0
    # A message of such a size would be refused, so the size is in another field, which is passed on.
    more: dict[str, Any] = {"metadata": {"filling": "x" * _LARGE_BYTES}} if number % 500 == 499 else {}
    if number % 1000 == 501:
        more = {"metadata": {"answer_bytes": str(_LARGE_ANSWER_BYTES)}}
    body = payloads.request_body(endpoint.model, stream_events=_STREAM_WORDS if streams else 0, more=more)
    url = f"http://127.0.0.1:{endpoint.port}{endpoint.path}"
    try:
        async with session.post(url, data=body, headers={"content-type": "application/json"}) as response:
            if leaves:
                await response.content.readany()
                response.close()
                sent.abandoned += 1
                return
            answer = await response.read()
    except aiohttp.ClientError as error:
        sent.failed.append(type(error).__name__)
        return
    end = payloads.CHAT.end if streams else payloads.ANSWER_END
    if response.status == 200 and end in answer:
        sent.answered += 1
    else:
        sent.failed.append(f"{response.status} {answer[:200]!r}")


async def _watch(watched: Watched, var_dir: Path, seconds: float) -> None:
    pause = min(5.0, seconds / 20)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        await asyncio.to_thread(_sample, watched, var_dir)
        await asyncio.sleep(pause)


def _sample(watched: Watched, var_dir: Path) -> None:
    for file in (var_dir / "run").glob("*.pid"):
        try:
            process = psutil.Process(int(file.read_text()))
            sample = Sample(process.pid, process.memory_full_info().pss, process.num_fds())
        except (psutil.Error, ValueError, OSError):
            continue  # The process is being replaced, which the next sample shows.
        watched.roles.setdefault(file.stem, []).append(sample)
    watched.spool.append(_spool_bytes(var_dir))


def _spool_bytes(var_dir: Path) -> int:
    total = 0
    for path in (var_dir / "spool").rglob("*"):
        try:
            total += path.stat().st_blocks * 512 if path.is_file() else 0
        except FileNotFoundError:
            continue  # The segment was shipped meanwhile.
    return total


async def _recorded(endpoint: Endpoint, headers: Mapping[str, str], sent: Sent) -> int:
    url = f"http://127.0.0.1:{endpoint.port}/api/llm/requests?limit=1"
    expected, count = sent.answered + sent.abandoned, -1
    deadline = time.monotonic() + _SETTLE_SECONDS
    async with aiohttp.ClientSession(headers=headers) as session:
        while count < expected and time.monotonic() < deadline:
            async with session.get(url) as response:
                count = int((await response.json())["count"])
            await asyncio.sleep(0.5)
    return count


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of traffic (600)")
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second (50)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
