"""How long `serve` takes to its word "Serving" and to its first answer, and what CPU all its processes take until it
serves."""

from __future__ import annotations

import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from benchmarks import processes
from benchmarks.targets.base import ROOT, Endpoint
from benchmarks.waiting import wait_until
from tests.services import postgresql_url, start_postgresql
from tests.stores import shared_secrets

_GIVE_UP_SECONDS = 120.0
_POLL_SECONDS = 0.01
_KEY = re.compile(r"API key +(\S+)")


@dataclass(frozen=True, slots=True)
class Start:
    serving: float
    cpu: float
    answered: float


def measure(start: Callable[[], subprocess.Popen[bytes]], log: Path, answers: Callable[[], bool]) -> Start:
    before = log.stat().st_size if log.exists() else 0
    began = time.perf_counter()
    process = start()
    _wait(lambda: b"Serving http" in log.read_bytes()[before:], "serve")
    serving, cpu = time.perf_counter() - began, _cpu_seconds(process.pid)
    _wait(answers, "answer")
    return Start(serving, cpu, time.perf_counter() - began)


def summary(name: str, starts: Sequence[Start]) -> str:
    each = ", ".join(f"{one.answered:.2f}" for one in starts)
    answered, serving, cpu = (
        statistics.median(values)
        for values in zip(*((one.answered, one.serving, one.cpu) for one in starts), strict=True)
    )
    return (
        f'{name} to first answer: {answered:.2f} s ({each}); to "Serving": {serving:.2f} s, {cpu:.2f} s of CPU of all'
        " processes."
    )


def first_starts(count: int, answers: Callable[[Endpoint], bool]) -> str:
    """Measures starts in new folders, on SQLite and on new databases of a PostgreSQL server."""
    with ExitStack() as stack:
        # PostgreSQL runs as another user than root, who has to reach the folder.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="starts-benchmark-")))
        folder.chmod(0o755)
        server, url = start_postgresql(folder / "postgresql")
        stack.callback(server.stop, signal.SIGINT)
        sqlite = [_first_start(folder / f"sqlite-{number}", {}, answers) for number in range(count)]
        on_server = []
        for number in range(count):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE first_{number}")
            database = {"DATABASE_URL": postgresql_url(folder / "postgresql", f"first_{number}"), **shared_secrets()}
            on_server.append(_first_start(folder / f"postgresql-{number}", database, answers))
    return f"{summary('First start on SQLite', sqlite)}\n{summary('First start on PostgreSQL', on_server)}"


def _first_start(folder: Path, environment: dict[str, str], answers: Callable[[Endpoint], bool]) -> Start:
    log, port = folder / "output.log", processes.free_port()
    environment |= {"PORT": str(port), "VAR_DIR": str(folder / "var"), "WEB_WORKERS": "2", "SANDBOX": "1"}
    command = [sys.executable, str(ROOT / "manage.py"), "serve"]
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(processes.start(command, log=log, environment=environment))
        return started[0]

    def first_answer() -> bool:
        key = _KEY.search(log.read_text())
        headers = {"authorization": f"Bearer {key[1] if key else ''}"}
        return answers(Endpoint(port, "/api/gateway/v1/chat/completions", "sandbox/echo", headers))

    try:
        return measure(start, log, first_answer)
    finally:
        for one in started:
            processes.stop(one)


def _wait(until: Callable[[], bool], what: str) -> None:
    wait_until(until, f"the product did not {what}", seconds=_GIVE_UP_SECONDS, pause=_POLL_SECONDS)


def _cpu_seconds(pid: int) -> float:
    """Counts processes that have ended, too, unless their parent ended without waiting for them."""
    total = 0.0
    for process in processes.tree(pid):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
