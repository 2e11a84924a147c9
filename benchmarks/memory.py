"""`python -m benchmarks.memory` measures the memory of every process of an idle `serve` with two workers, the time from
a restart to the first answer, and what large answers leave behind in the web workers. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import ClassVar

from benchmarks import payloads, processes, report
from benchmarks.gateway import mock_upstream
from benchmarks.propagation import OursManaged
from benchmarks.targets.base import Endpoint
from benchmarks.waiting import wait_until

_GIVE_UP_SECONDS = 120.0
_POLL_SECONDS = 0.01
_LARGE_BYTES = 64_000_000
# Workers return freed memory within seconds.
_SETTLE_SECONDS = 6.0


class OursWhole(OursManaged):
    """The whole product, sandbox provider included, with two workers."""

    name: ClassVar[str] = "ours-whole"
    sandbox: ClassVar[bool] = True
    _started: tuple[list[str], dict[str, str] | None]

    def _launch(self, command: list[str], ready: str, environment: dict[str, str] | None = None) -> None:
        self._started = command, environment
        super()._launch(command, ready, environment)

    def start_again(self) -> None:
        """Starts the stopped service anew on the same folder, and waits for nothing."""
        command, environment = self._started
        self.process = processes.start(command, log=self.log, environment=environment, folder=self.workspace)

    def ships(self) -> bool:
        """Returns whether the shipper runs."""
        assert self.process is not None  # noqa: S101 - as in `pss`
        roles = self.roles()
        return any(roles.get(one.pid) == "shipper" for one in processes.tree(self.process.pid))

    def pss(self) -> dict[str, float]:
        """Returns the megabytes of each process by role: its own memory, and of what it shares its share."""
        assert self.process is not None  # noqa: S101 - the callers have started it
        roles = {self.process.pid: "serve", **self.roles()}
        return {
            roles.get(one.pid, one.name()): one.memory_full_info().pss / 1e6 for one in processes.tree(self.process.pid)
        }


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memory-benchmark-")))
        mock_port = stack.enter_context(mock_upstream())
        target = OursWhole(workspace)
        stack.callback(target.stop)
        endpoint = target.start(mock_port)
        _wait_until_whole(target)
        restarts = []
        for _ in range(options.restarts):
            restarts.append(_seconds_to_answer(target, endpoint))
            _wait_until_whole(target)
        time.sleep(options.idle)
        idle = target.pss()
        after = [_web_workers_after_large(target, endpoint, options.at_once) for _ in range(options.large)]
    sys.stdout.write(
        f"{table(idle)}\n\n{summary(restarts, idle, after, at_once=options.at_once)}\n{report.machine()}\n"
    )
    return 0


def table(idle: Mapping[str, float]) -> str:
    """Returns the megabytes of each process, the largest first, and of all together."""
    lines = ["| Process | PSS MB |", "|---|---|"]
    lines += [f"| {role} | {value:,.0f} |" for role, value in sorted(idle.items(), key=lambda item: -item[1])]
    return "\n".join([*lines, f"| together | {sum(idle.values()):,.0f} |"])


def summary(
    restarts: Sequence[float], idle: Mapping[str, float], after: Sequence[Sequence[float]], *, at_once: int
) -> str:
    """Returns the sentences about restarts and large answers; those without a measurement are left out."""
    lines = []
    if restarts:
        each = ", ".join(f"{seconds:.2f}" for seconds in restarts)
        lines.append(f"Restart to first answer: {statistics.median(restarts):.2f} s ({each}).")
    if after:
        before = sorted(value for role, value in idle.items() if role.startswith("web-"))
        course = "; ".join(_megabytes(values) for values in (before, *after))
        lines.append(
            f"Web workers before and after each {at_once} answers of {_LARGE_BYTES / 1e6:.0f} MB at once, MB: {course}."
        )
    return "\n".join(lines)


def _megabytes(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


def _wait_until_whole(target: OursWhole) -> None:
    """Returns when the shipper runs, which starts when the analytics store has its tables: a service that is stopped
    before leaves the lease of its migrations, for which the next start would wait."""
    wait_until(target.ships, "the shipper did not start", seconds=_GIVE_UP_SECONDS, pause=_POLL_SECONDS)


def _seconds_to_answer(target: OursWhole, endpoint: Endpoint) -> float:
    target.stop()
    began = time.perf_counter()
    target.start_again()
    wait_until(
        partial(_answers, endpoint, payloads.request_body(endpoint.model)),
        "the product did not answer after a restart",
        seconds=_GIVE_UP_SECONDS,
        pause=_POLL_SECONDS,
    )
    return time.perf_counter() - began


def _web_workers_after_large(target: OursWhole, endpoint: Endpoint, at_once: int) -> list[float]:
    more = {"metadata": {"answer_bytes": str(_LARGE_BYTES)}}
    bodies = [payloads.request_body(endpoint.model, more=more)] * at_once
    with ThreadPoolExecutor(at_once) as clients:
        answered = list(clients.map(partial(_answers, endpoint), bodies))
    if not all(answered):
        raise RuntimeError("a large answer failed")
    time.sleep(_SETTLE_SECONDS)
    return sorted(value for role, value in target.pss().items() if role.startswith("web-"))


def _answers(endpoint: Endpoint, body: bytes) -> bool:
    """Returns whether a completion was answered to its end."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{endpoint.port}{endpoint.path}",
        data=body,
        headers={"content-type": "application/json", **endpoint.headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=_GIVE_UP_SECONDS) as response:  # noqa: S310 - as above
            return payloads.ANSWER_END in response.read()
    except (urllib.error.URLError, OSError):
        return False


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--restarts", type=int, default=5, help="of the warm installation (5)")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds before memory is measured (60)")
    parser.add_argument("--large", type=int, default=10, help="rounds of answers of 64 MB (10)")
    parser.add_argument("--at-once", type=int, default=1, help="answers of a round (1)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
