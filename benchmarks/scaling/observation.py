"""Runs one host and then several, idle and under the same load: their difference is what each host adds."""

from __future__ import annotations

import json
import tempfile
import time
import urllib.request
import uuid
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import redis
from tqdm import tqdm

from benchmarks import load
from benchmarks.gateway import mock_upstream
from benchmarks.scaling import traffic
from benchmarks.scaling.hosts import Installation, installation
from benchmarks.scaling.inputs import Mix
from benchmarks.scaling.readings import Meter, Reading, Use, meter, use
from benchmarks.targets.base import Endpoint

# Before each window, so that neither processes that start are in it nor merges of what was sent before; of the time for
# which idle hosts are watched.
_SETTLE_SHARE = 1 / 8
_LOADED_SHARE = 2 / 3
_SESSIONS = 50
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Observed:
    idle: tuple[Use, Use]
    loaded: tuple[Use, Use]
    scope_bytes: float

    @property
    def hosts(self) -> int:
        return self.idle[1].hosts


def observe(hosts: int, rate: float, seconds: float, mix: Mix) -> Observed:
    """Watches idle hosts for `seconds`, and loaded ones for two thirds of them, one host and then all. Raises
    RuntimeError or TimeoutError with the reason if something does not start or answer."""
    idle, loaded = [], []
    with (
        # The paths of Unix sockets have to be short.
        tempfile.TemporaryDirectory(prefix="hosts-", dir="/tmp") as folder,
        tqdm(total=7, desc="hosts", unit="step") as progress,
        mock_upstream() as mock_port,
        installation(Path(folder), mock_port) as made,
    ):
        for number in (1, hosts):
            _step(progress, f"starting up to host {number}")
            made.grow(number)
            time.sleep(seconds * _SETTLE_SHARE)
            with meter(made) as gauge:
                _step(progress, f"load on {number}")
                loaded.append(_loaded(made, gauge, rate, seconds * _LOADED_SHARE, mix))
                _step(progress, f"{number} idle")
                idle.append(_idle(made, gauge, seconds))
        _step(progress, "budgets")
        scope_bytes = _scope_bytes(made.endpoints[0], made.stores.redis_url)
    return Observed((idle[0], idle[1]), (loaded[0], loaded[1]), scope_bytes)


def _step(progress: tqdm, what: str) -> None:  # type: ignore[type-arg]  # its stubs alone are generic
    progress.set_postfix_str(what)
    progress.update()


def _loaded(made: Installation, gauge: Meter, rate: float, seconds: float, mix: Mix) -> Use:
    readings: list[Reading] = []

    def at_border(border: str) -> None:
        readings.append(gauge.begin() if border == "start" else gauge.end())

    answered = traffic.send(traffic.plans(made.endpoints, mix, rate, seconds), at_border)
    before, after = readings
    return use(len(made.hosts), answered, (before, after))


def _idle(made: Installation, gauge: Meter, seconds: float) -> Use:
    made.wait_until_shipped()
    time.sleep(seconds * _SETTLE_SHARE)
    before = gauge.begin()
    time.sleep(seconds)
    return use(len(made.hosts), 0.0, (before, gauge.end()))


def _scope_bytes(endpoint: Endpoint, redis_url: str) -> float:
    sessions = [f"session-{uuid.uuid4()}" for _ in range(_SESSIONS)]
    with closing(redis.Redis.from_url(redis_url)) as client:
        before = set(client.scan_iter("*:session:*", count=1000))
        for session in sessions:
            _ask(replace(endpoint, headers={**endpoint.headers, "x-svc-session-id": session}))
        kept = set(client.scan_iter("*:session:*", count=1000)) - before
        return sum(client.memory_usage(name) or 0 for name in kept) / len(sessions)


def _ask(endpoint: Endpoint) -> None:
    plan = load.Plan(endpoint.port, endpoint.path, endpoint.model, fields=endpoint.fields)
    body = load.encode(plan).partition(b"\r\n\r\n")[2]
    headers = {"content-type": "application/json", **endpoint.headers}
    url = f"http://127.0.0.1:{endpoint.port}{endpoint.path}"
    request = urllib.request.Request(url, data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as response:  # noqa: S310 - a loopback http address
        json.load(response)
