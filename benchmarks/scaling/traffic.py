"""Steady requests on every host, each with its own texts: `python -m benchmarks.scaling.traffic PLANS` runs several
plans of the load driver in one process.

It prints `start` and `stop` at the borders of the measured window, and last the results as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import uvloop

from benchmarks import load
from benchmarks.client import Connection, Request
from benchmarks.load import Driver, Plan
from benchmarks.record_entries import sentences, text
from benchmarks.scaling.hosts import without_prompt
from benchmarks.scaling.inputs import Mix
from benchmarks.scenarios import EVENTS_PER_SECOND
from benchmarks.targets.base import ROOT, Endpoint

# Beyond the length of a stream, so that hosts and shippers are under way in the window.
_WARM_UP_SECONDS = 4.0
# Characters of more than one byte in JSON: requests have a size.
_ESCAPED = re.compile(r"[^ !#-\[\]-~]")


def plans(endpoints: Sequence[Endpoint], mix: Mix, rate: float, seconds: float) -> list[Plan]:
    kinds = [
        (streams, prompts, share)
        for streams, of_streams in ((True, mix.streams), (False, 1 - mix.streams))
        for prompts, of_prompts in ((True, mix.prompts), (False, 1 - mix.prompts))
        if (share := of_streams * of_prompts) > 0
    ]
    return [
        _plan(endpoint if prompts else without_prompt(endpoint), mix, rate * share / len(endpoints), seconds, streams)
        for endpoint in endpoints
        for streams, prompts, share in kinds
    ]


def _plan(endpoint: Endpoint, mix: Mix, rate: float, seconds: float, streams: bool) -> Plan:
    stream_seconds = mix.chunks / EVENTS_PER_SECOND
    # A request that finds no idle connection waits: there are twice as many as are busy on average.
    busy = rate * (stream_seconds if streams else 0.1)
    return Plan(
        endpoint.port,
        endpoint.path,
        endpoint.model,
        endpoint.headers,
        endpoint.fields,
        connections=4 + math.ceil(2 * busy),
        seconds=seconds,
        # All windows begin together, streams or not.
        warmup=stream_seconds + _WARM_UP_SECONDS,
        rate=rate,
        body_bytes=int(mix.request_bytes),
        stream_events=int(mix.chunks) if streams else 0,
        events_per_second=EVENTS_PER_SECOND,
    )


def send(wanted: Sequence[Plan], at_border: Callable[[str], None]) -> float:
    """Returns the answers a second of all plans in their window, at whose borders `at_border` is called.

    Raises RuntimeError for a wrong answer, which would not cost what others do.
    """
    command = [sys.executable, "-m", "benchmarks.scaling.traffic", json.dumps([asdict(plan) for plan in wanted])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as driver:
        try:
            assert driver.stdout is not None  # noqa: S101 - a pipe was asked for
            for border in ("start", "stop"):
                if driver.stdout.readline().strip() != border:
                    raise RuntimeError(f"the load driver ended before the {border} of the window")
                at_border(border)
            found: list[dict[str, Any]] = json.loads(driver.stdout.readline() or "[]")
        except BaseException:
            driver.kill()
            raise
    errors = sum((Counter(one["error_kinds"]) for one in found), Counter[str]())
    rate: float = sum(one["requests_per_second"] for one in found)
    if errors or not rate:
        raise RuntimeError(f"requests were not answered as they should be: {dict(errors) or 'none was answered'}")
    return rate


class _Speaker(Connection):
    """Sends other words each time: repeated ones would cost the text indexes next to nothing."""

    requests: Iterator[Request]

    def send(self, started: float | None = None) -> None:
        self._request = next(self.requests)
        super().send(started)


class _Speakers(Driver):
    def __init__(self, plan: Plan, on_window: Callable[[str], None]) -> None:
        super().__init__(plan, on_window)
        self._requests = requests(plan, self._request)

    def _new_connection(self) -> Connection:
        connection = _Speaker(self._request, self._on_idle, self._on_done, self._on_lost)
        connection.requests = self._requests
        return connection


def requests(plan: Plan, like: Request) -> Iterator[Request]:
    chance, known = random.Random(), sentences()
    while True:
        words = "".join(text(chance, known) for _ in range(1 + plan.body_bytes // 2048))
        yield Request(load.encode(plan, _ESCAPED.sub("", words)), like.words, like.protocol)


async def _main(wanted: Sequence[Plan]) -> None:
    reached: Counter[str] = Counter()

    def at_border(border: str) -> None:
        reached[border] += 1
        if reached[border] == len(wanted):
            print(border, flush=True)

    results = await asyncio.gather(*(_Speakers(plan, at_border).run() for plan in wanted))
    print(json.dumps([asdict(result) for result in results]), flush=True)


if __name__ == "__main__":
    gc.disable()
    uvloop.run(_main([Plan(**plan) for plan in json.loads(sys.argv[1])]))
