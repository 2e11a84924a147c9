"""`pytest --lanes N`: one process imports and collects once, and N forks of it run the modules, from one queue.

A lane (`tests/lane.py`) has its own stores, as each pytest has. Lanes send their reports to this process, which prints,
counts and caches them as if it had run the tests itself. The longest work comes first, so that none is left running
alone at the end.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, cast

import pytest

from tests import lane as lane_process
from tests.budgets import COLLECTION, Used, folder_of, known_seconds

# Tests of these folders share a service of their session, or wait for other programs more than they compute.
_GROUPS = (
    "agent/stories",
    "clients",
    "clients/agents",
    "clients/applications",
    "clients/exporters",
    "journeys",
    "sign_in",
)
_WAITING = ("clients", "fleet", "fuzzing", "journeys", "live", "sign_in")
_SHARED_SERVICE = "live_service"
_SECONDS_OF_A_TEST = 0.05


@dataclass
class Work:
    name: str
    tests: list[pytest.Item]
    alone: bool = False

    @property
    def seconds(self) -> float:
        known = known_seconds()
        by_name = sum(known.get(name, 0.0) for name in {module_of(test) for test in self.tests})
        return by_name or len(self.tests) * _SECONDS_OF_A_TEST


@dataclass
class Lane:
    pid: int
    connection: Connection
    work: Work
    left: deque[pytest.Item] = field(default_factory=deque)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lanes", type=int, default=0, help="run the modules in so many processes, side by side")
    parser.addoption("--used", help="the file that gets the seconds of each unit and module")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = session.config.getoption("--lanes")
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    _make_document()
    lanes = Lanes(session, count)
    lanes.used.add(COLLECTION, "", time.process_time(), time.process_time())
    lanes.run()
    if path := session.config.getoption("--used"):
        lanes.used.write(path)
    return True


def module_of(test: pytest.Item) -> str:
    return test.nodeid.partition("::")[0]


def works_of(tests: Iterable[pytest.Item]) -> list[Work]:
    parts: dict[str, list[pytest.Item]] = defaultdict(list)
    for test in tests:
        parts[_name_of(test)].append(test)
    works = [Work(name, members, alone=_waits(name)) for name, members in parts.items()]
    return sorted(works, key=lambda work: -work.seconds)


def _waits(name: str) -> bool:
    return folder_of(name).partition("/")[0] in _WAITING


def _name_of(test: pytest.Item) -> str:
    module = module_of(test)
    folder = folder_of(module)
    if _SHARED_SERVICE in getattr(test, "fixturenames", ()):
        return f"tests/{folder}/ with a shared service"
    return f"tests/{folder}/" if folder in _GROUPS else module


def _make_document() -> None:
    """Makes what every lane would make anew: the document, of which two functions keep what they made."""
    from tests.described import document

    document()


class Lanes:
    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session, self._count = session, count
        self._works = works_of(session.items)
        self._waiting = list(self._works)
        self._busy: dict[Connection, Lane] = {}
        self._idle: list[Lane] = []
        self.used = Used()

    def run(self) -> None:
        gc.collect()
        gc.freeze()
        self._give()
        while self._busy:
            for connection in wait(list(self._busy)):
                self._hear(self._busy[cast("Connection", connection)])
        while self._idle:
            self._dismiss(self._idle.pop())

    def _give(self) -> None:
        while self._waiting and len(self._busy) < self._count:
            self._begin(self._next())

    def _next(self) -> Work:
        waits = sum(lane.work.alone for lane in self._busy.values()) < self._count // 2
        place = next((place for place, work in enumerate(self._waiting) if work.alone is waits), 0)
        return self._waiting.pop(place)

    def _begin(self, work: Work) -> None:
        lane = self._fork(work) if work.alone or not self._idle else self._idle.pop()
        lane.work, lane.left = work, deque(work.tests)
        self._busy[lane.connection] = lane
        lane.connection.send(next(number for number, known in enumerate(self._works) if known is work))

    def _fork(self, work: Work) -> Lane:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for other in [*self._busy.values(), *self._idle]:
                other.connection.close()
            lane_process.live(self._session, theirs, [known.tests for known in self._works], work.name)
        theirs.close()
        return Lane(pid, ours, work)

    def _hear(self, lane: Lane) -> None:
        try:
            kind, content = lane.connection.recv()
        except (EOFError, ConnectionResetError):
            self._lose(lane)
            return
        if kind == "begun":
            while lane.left and lane.left.popleft().nodeid != content:
                pass
        elif kind == "report":
            self._report(content)
        elif kind == "used":
            self.used.add(*content)
        else:
            self._end(lane)

    def _end(self, lane: Lane) -> None:
        del self._busy[lane.connection]
        if lane.work.alone:
            self._dismiss(lane)
        else:
            self._idle.append(lane)
        self._give()

    def _dismiss(self, lane: Lane) -> None:
        lane.connection.send(None)
        while True:
            try:
                kind, content = lane.connection.recv()
            except (EOFError, ConnectionResetError):
                break
            if kind == "report":
                self._report(content)
            elif kind == "used":
                self.used.add(*content)
        lane.connection.close()
        os.waitpid(lane.pid, 0)

    def _lose(self, lane: Lane) -> None:
        """Names the test in which a lane broke off, and has another lane run the rest."""
        del self._busy[lane.connection]
        lane.connection.close()
        _, status = os.waitpid(lane.pid, 0)
        done = len(lane.work.tests) - len(lane.left)
        at = lane.work.tests[max(done - 1, 0)]
        said = f"the process that ran it ended with {os.waitstatus_to_exitcode(status)}"
        report = pytest.TestReport(at.nodeid, at.location, {}, "failed", said, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)
        self._tell(report)
        if rest := list(lane.left):
            # Lanes that run already do not know this work, so that it gets a lane of its own.
            work = Work(lane.work.name, rest, alone=True)
            self._works.append(work)
            self._waiting.append(work)
        self._give()

    def _report(self, content: dict[str, Any]) -> None:
        config = self._session.config
        report = config.hook.pytest_report_from_serializable(config=config, data=content)
        if report.when == "setup":
            config.hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
        config.hook.pytest_runtest_logreport(report=report)
        if report.failed:
            self._tell(report)

    def _tell(self, report: pytest.TestReport) -> None:
        """Reports a failure at once: a run that is broken off does not reach the summary."""
        reporter: Any = self._session.config.pluginmanager.get_plugin("terminalreporter")
        reason = report.longreprtext.strip().rpartition("\n")[2]
        reporter.write_line(f"FAILED {report.nodeid} ({report.when}) {reason}"[:300])
