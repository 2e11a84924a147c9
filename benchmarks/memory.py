"""`python -m benchmarks.memory` measures the memory of every process of an idle `serve` with two workers, the time that
restarts and first starts take, and what large answers leave behind in the web workers. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import os
import subprocess
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

from benchmarks import payloads, processes, report, starts
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
    name: ClassVar[str] = "ours-whole"
    sandbox: ClassVar[bool] = True
    _started: tuple[list[str], dict[str, str] | None]

    def _launch(self, command: list[str], ready: str, environment: dict[str, str] | None = None) -> None:
        self._started = command, environment
        super()._launch(command, ready, environment)

    def start_again(self) -> subprocess.Popen[bytes]:
        command, environment = self._started
        self.process = processes.start(command, log=self.log, environment=environment, folder=self.workspace)
        return self.process

    def ships(self) -> bool:
        assert self.process is not None  # noqa: S101 - as in `pss`
        roles = self.roles()
        return any(roles.get(one.pid) == "shipper" for one in processes.tree(self.process.pid))

    def pss(self) -> dict[str, float]:
        """Returns megabytes by role as PSS: a process's own memory, and its share of what it shares."""
        assert self.process is not None  # noqa: S101 - the callers have started it
        roles = {self.process.pid: "serve", **self.roles()}
        return {
            roles.get(one.pid, one.name()): one.memory_full_info().pss / 1e6 for one in processes.tree(self.process.pid)
        }


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # Only the start that is not measured compiles modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memory-benchmark-")))
        mock_port = stack.enter_context(mock_upstream())
        target = OursWhole(workspace)
        stack.callback(target.stop)
        endpoint = target.start(mock_port)
        _wait_until_whole(target)
        restarts = []
        for _ in range(options.restarts):
            restarts.append(_restart(target, endpoint))
            _wait_until_whole(target)
        time.sleep(options.idle)
        idle = target.pss()
        after = [_web_workers_after_large(target, endpoint, options.at_once) for _ in range(options.large)]
        target.stop()
    first = [starts.first_starts(options.first_starts, _answers_echo)] if options.first_starts else []
    lines = [*first, *summary(restarts, idle, after, at_once=options.at_once)]
    sys.stdout.write("\n".join([table(idle), "", *lines, report.machine(), ""]))
    return 0


def table(idle: Mapping[str, float]) -> str:
    lines = ["| Process | PSS MB |", "|---|---|"]
    lines += [f"| {role} | {value:,.0f} |" for role, value in sorted(idle.items(), key=lambda item: -item[1])]
    return "\n".join([*lines, f"| together | {sum(idle.values()):,.0f} |"])


def summary(
    restarts: Sequence[starts.Start], idle: Mapping[str, float], after: Sequence[Sequence[float]], *, at_once: int
) -> list[str]:
    lines = [starts.summary("Restart", restarts)] if restarts else []
    if after:
        before = sorted(value for role, value in idle.items() if role.startswith("web-"))
        course = "; ".join(_megabytes(values) for values in (before, *after))
        lines.append(
            f"Web workers before and after each {at_once} answers of {_LARGE_BYTES / 1e6:.0f} MB at once, MB: {course}."
        )
    return lines


def _megabytes(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


def _wait_until_whole(target: OursWhole) -> None:
    """The shipper starts once the analytics store has its tables. A service stopped before that leaves the lease of its
    migrations, for which the next start would wait."""
    wait_until(target.ships, "the shipper did not start", seconds=_GIVE_UP_SECONDS, pause=_POLL_SECONDS)


def _restart(target: OursWhole, endpoint: Endpoint) -> starts.Start:
    target.stop()
    body = payloads.request_body(endpoint.model)
    return starts.measure(target.start_again, target.log, partial(_answers, endpoint, body))


def _web_workers_after_large(target: OursWhole, endpoint: Endpoint, at_once: int) -> list[float]:
    more = {"metadata": {"answer_bytes": str(_LARGE_BYTES)}}
    bodies = [payloads.request_body(endpoint.model, more=more)] * at_once
    with ThreadPoolExecutor(at_once) as clients:
        answered = list(clients.map(partial(_answers, endpoint), bodies))
    if not all(answered):
        raise RuntimeError("a large answer failed")
    time.sleep(_SETTLE_SECONDS)
    return sorted(value for role, value in target.pss().items() if role.startswith("web-"))


def _answers_echo(endpoint: Endpoint) -> bool:
    return _answers(endpoint, payloads.request_body(endpoint.model), b'"choices"')


def _answers(endpoint: Endpoint, body: bytes, part: bytes = payloads.ANSWER_END) -> bool:
    request = urllib.request.Request(
        f"http://127.0.0.1:{endpoint.port}{endpoint.path}",
        data=body,
        headers={"content-type": "application/json", **endpoint.headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=_GIVE_UP_SECONDS) as response:  # noqa: S310 - as above
            return part in response.read()
    except (urllib.error.URLError, OSError):
        return False


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--first-starts", type=int, default=0, help="in new folders, on either SQL database (0)")
    parser.add_argument("--restarts", type=int, default=5, help="of the warm installation (5)")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds before memory is measured (60)")
    parser.add_argument("--large", type=int, default=10, help="rounds of answers of 64 MB (10)")
    parser.add_argument("--at-once", type=int, default=1, help="answers of a round (1)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
