"""`python -m benchmarks.idle` measures what every process of a `serve` with two workers costs at small loads, none
included: percent of a core and PSS. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks import payloads, processes, report
from benchmarks.memory import OursWhole
from benchmarks.targets.base import Endpoint
from benchmarks.waiting import wait_until

_GIVE_UP_SECONDS = 120.0
# What follows a start or a load: merges, leases, the first run of each task.
_SETTLE_SECONDS = 15.0


class OursIdle(OursWhole):
    name: ClassVar[str] = "ours-idle"
    model: ClassVar[str] = "sandbox/echo"

    def _prepare(self, api: str, mock_port: int, headers: dict[str, str]) -> None:
        """Needs no other provider than the sandbox."""

    def cpu_seconds(self) -> dict[str, float]:
        """Returns the seconds of each process so far by role."""
        assert self.process is not None  # noqa: S101 - the caller has started it
        roles = {self.process.pid: "serve", **self.roles()}
        spent: dict[str, float] = defaultdict(float)
        for one in processes.tree(self.process.pid):
            spent[roles.get(one.pid) or one.name()] += processes.cpu_seconds([one])
        return spent


@dataclass(frozen=True, slots=True)
class Measured:
    """`percent` is of one core, by role."""

    rate: float
    percent: Mapping[str, float]
    pss: Mapping[str, float]
    failed: int


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="idle-benchmark-")))
        target = OursIdle(workspace)
        stack.callback(target.stop)
        endpoint = target.start(mock_port=0)
        measured = [_measure(target, endpoint, rate, options.seconds) for rate in options.rates]
    sys.stdout.write(f"{table(measured)}\n\n{report.machine()}\n")
    return 1 if any(one.failed for one in measured) else 0


def table(measured: Sequence[Measured]) -> str:
    roles = sorted({role for one in measured for role in one.percent}, key=lambda role: -measured[0].pss.get(role, 0))
    titles = [f"{one.rate:g}/s, %" for one in measured]
    lines = [_row("Process", *titles, "PSS MB"), _row(*["---"] * (len(measured) + 2))]
    for role in roles:
        shares = [f"{one.percent.get(role, 0):.2f}" for one in measured]
        lines.append(_row(role, *shares, f"{measured[0].pss.get(role, 0):,.0f}"))
    sums = [f"{sum(one.percent.values()):.2f}" for one in measured]
    lines.append(_row("together", *sums, f"{sum(measured[0].pss.values()):,.0f}"))
    lines.append(_row("failed", *[str(one.failed) for one in measured], ""))
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _measure(target: OursIdle, endpoint: Endpoint, rate: float, seconds: float) -> Measured:
    wait_until(lambda: not target.has_work_left(), "the shipper did not catch up", seconds=_GIVE_UP_SECONDS)
    time.sleep(_SETTLE_SECONDS)
    before, began = target.cpu_seconds(), time.monotonic()
    failed = _send(endpoint, rate, seconds)
    after, took = target.cpu_seconds(), time.monotonic() - began
    # A process that was started meanwhile counts from its start.
    percent = {role: (spent - before.get(role, 0.0)) / took * 100 for role, spent in after.items()}
    return Measured(rate, percent, target.pss(), failed)


def _send(endpoint: Endpoint, rate: float, seconds: float) -> int:
    """Sends one request after the other, each when it is due, and returns how many failed."""
    body, failed = payloads.request_body(endpoint.model), 0
    headers: dict[str, Any] = {"content-type": "application/json", **endpoint.headers}
    began = time.monotonic()
    with closing(http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=_GIVE_UP_SECONDS)) as connection:
        for number in range(round(rate * seconds)):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            connection.request("POST", endpoint.path, body, headers)
            with connection.getresponse() as answer:
                answer.read()
                failed += answer.status != 200
        time.sleep(max(0.0, began + seconds - time.monotonic()))
    return failed


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=__doc__)
    parser.add_argument("--rates", type=_rates, default=[0, 1, 10, 50], help="requests a second (0,1,10,50)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each rate (60)")
    return parser.parse_args(arguments)


def _rates(given: str) -> list[float]:
    return [float(rate) for rate in given.split(",")]


if __name__ == "__main__":
    raise SystemExit(main())
