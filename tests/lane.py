from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NoReturn, cast

import pytest

from tests import cpu, forks, plugin
from tests.budgets import STORES, unit_of
from tests.live import read_only_root

_LIVE = "tests/live/"


def live(session: pytest.Session, connection: Connection, works: Sequence[list[pytest.Item]], name: str) -> NoReturn:
    code = 1
    try:
        if name.startswith(_LIVE) and not read_only_root.refusal():
            os.environ[read_only_root.ASKED] = "1"
        lane = _Lane(session, connection)
        while (number := connection.recv()) is not None:
            lane.run(works[number])
            connection.send(("done", number))
        lane.end()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class _Sessions:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[pytest.Session]:
        return [self._session]


class _Lane:
    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._session, self._config, self._connection = session, session.config, connection
        self._last: pytest.Item | None = None
        # The CPU that fixtures of the session took in the work that runs: of whichever work asked first.
        self._shared, self._depth = 0.0, 0
        plugins = session.config.pluginmanager
        for name in ("terminalreporter", "lfplugin", "nfplugin", "stepwiseplugin"):
            if plugins.has_plugin(name):
                plugins.unregister(name=name)
        plugins.register(self, "lane")
        _capture_anew(session.config)
        plugin.own_stores()
        forks.become(dict(os.environ))
        plugin.begin_forks(session.config)

    def run(self, tests: list[pytest.Item]) -> None:
        began, before = time.monotonic(), cpu.used(os.getpid())
        self._shared = 0.0
        last = cast("pytest.Item", _Sessions(self._session))
        for test, following in zip(tests, [*tests[1:], last], strict=True):
            self._last = test
            self._connection.send(("begun", test.nodeid))
            self._config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if self._session.shouldstop:
                break
        used, wall = cpu.used(os.getpid()) - before, time.monotonic() - began
        module = tests[0].nodeid.partition("::")[0]
        self._connection.send(("used", (unit_of(module), module, used - self._shared, wall)))
        self._connection.send(("used", (STORES, "", self._shared, 0.0)))

    def end(self) -> None:
        before = cpu.used(os.getpid())
        try:
            self._session._setupstate.teardown_exact(None)
        except BaseException as error:
            assert self._last is not None, "a fixture ended that no test had asked for"
            call = pytest.CallInfo[None](
                None, pytest.ExceptionInfo.from_exception(error), 0, 0, 0, "teardown", _ispytest=True
            )
            self._send(pytest.TestReport.from_item_and_call(self._last, cast("Any", call)))
        used = cpu.used(os.getpid()) - before
        self._connection.send(("used", (STORES, "", used, 0.0)))
        forks.end()
        plugin.stop()
        factory = getattr(self._config, "_tmp_path_factory", None)
        if factory is not None and factory._basetemp is not None:
            shutil.rmtree(factory._basetemp, ignore_errors=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._send(report)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope != "session" or self._depth:
            return (yield)
        before = cpu.used(os.getpid())
        self._depth += 1
        try:
            return (yield)
        finally:
            self._depth -= 1
            self._shared += cpu.used(os.getpid()) - before

    def _send(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))


def _capture_anew(config: pytest.Config) -> None:
    manager = config.pluginmanager.get_plugin("capturemanager")
    if manager is not None:
        with suppress(AttributeError):
            manager.stop_global_capturing()
            manager.start_global_capturing()
