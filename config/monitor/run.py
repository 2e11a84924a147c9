"""Runs the monitor in threads of the `serve` process, which depends on none of the processes that it monitors."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from wsgiref.simple_server import WSGIServer

import msgspec
from django.conf import settings
from prometheus_client import CollectorRegistry, start_http_server

from config.monitor import state
from config.monitor.alarms import Alarms, active_alarms
from config.monitor.exposition import HostCollector
from config.monitor.state import HostState
from config.monitor.subjects import STORE_SECONDS, STORES, SUBJECTS
from core.processes.background_tasks import keep_thread_running
from core.processes.monitoring import Alarm, Subject
from gateway.alerts.operators import OperatorAlerts

logger = logging.getLogger("config.monitor")

_PUBLISH_SECONDS = 1.0
# A store that takes longer than this counts as unreachable, even if it answers in the end.
_HANGING_SECONDS = 10.0


@dataclass
class _Answer:
    """The latest answer of one subject. `began` is set while a question is under way; times are monotonic."""

    found: dict[str, Any] | None = None
    answered: float = 0.0
    began: float | None = None
    failed: bool = False

    def is_hanging(self, now: float) -> bool:
        return self.began is not None and now - self.began > _HANGING_SECONDS


@dataclass
class Monitor:
    """The watching threads. `start` and `stop` wait for no subject, and no subject's failure ends the watch."""

    subjects: Sequence[Subject]
    alarms: Alarms
    notified_before: Callable[[], list[Alarm]]
    _answers: dict[str, _Answer] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _publisher: threading.Thread | None = None
    _resumed: list[Alarm] = field(default_factory=list)
    _started_at: float = field(default_factory=time.time)

    def start(self) -> None:
        for name, ping in STORES.items():
            self._begin(f"store.{name}", _timed(ping), STORE_SECONDS)
        for subject in self.subjects:
            self._begin(subject.name, subject.ask, subject.seconds)
        keep_thread_running("monitor.resume", self._resume)
        self._publisher = keep_thread_running("monitor.publish", self._publish)

    def stop(self) -> None:
        self._stop.set()
        if self._publisher is not None:
            self._publisher.join(_PUBLISH_SECONDS)

    def _begin(self, name: str, ask: Callable[[], dict[str, Any]], seconds: float) -> None:
        answer = self._answers[name] = _Answer()
        keep_thread_running(f"monitor.{name}", partial(self._watch, name, answer, ask, seconds))

    def _watch(self, name: str, answer: _Answer, ask: Callable[[], dict[str, Any]], seconds: float) -> None:
        while not self._stop.is_set():
            answer.began = time.monotonic()
            try:
                answer.found = ask()
            except Exception as error:
                # The next question may succeed whatever failed now, so each change of state is logged once.
                if not answer.failed:
                    logger.warning("subject.failed name=%s error=%s", name, type(error).__name__)
                answer.failed = True
            else:
                if answer.failed:
                    logger.warning("subject.recovered name=%s", name)
                answer.failed, answer.answered = False, time.monotonic()
            answer.began = None
            self._stop.wait(seconds)

    def _resume(self) -> None:
        """Restores the alarms of an earlier process on this host as soon as the database can be read."""
        while not self._stop.is_set():
            try:
                self._resumed = self.notified_before()
            except Exception as error:
                logger.info("alarms.not_resumed error=%s", type(error).__name__)
                self._stop.wait(STORE_SECONDS)
            else:
                return

    def _publish(self) -> None:
        notice = state.writer()
        while True:
            try:
                notice.put(self._news())
            except Exception:
                # This thread alone sends notices, so no exception may end it.
                logger.exception("monitor.failed")
            if self._stop.wait(_PUBLISH_SECONDS):
                notice.close()
                return

    def _news(self) -> bytes:
        found = self.state()
        resumed, self._resumed = self._resumed, []
        self.alarms.resume(resumed)
        self.alarms.look(active_alarms(found, self.subjects))
        found.alarms = self.alarms.notified
        return msgspec.json.encode(found)

    def state(self) -> HostState:
        now = time.monotonic()
        return HostState(
            at=time.time(),
            started_at=self._started_at,
            stores={
                name: _store(answer, now)
                for name in STORES
                if (answer := self._answers[f"store.{name}"]).answered or answer.failed or answer.is_hanging(now)
            },
            found={
                subject.name: answer.found
                for subject in self.subjects
                if (answer := self._answers[subject.name]).found is not None
            },
            ages={
                subject.name: now - answer.answered
                for subject in self.subjects
                if (answer := self._answers[subject.name]).answered
            },
        )


def _store(answer: _Answer, now: float) -> dict[str, Any]:
    up = not answer.failed and not answer.is_hanging(now)
    return {"up": up, "seconds": (answer.found or {}).get("seconds", 0.0)}


def _timed(ping: Callable[[], None]) -> Callable[[], dict[str, Any]]:
    def ask() -> dict[str, Any]:
        began = time.monotonic()
        ping()
        return {"seconds": time.monotonic() - began}

    return ask


class Endpoint:
    """An HTTP server in threads of its own. Raises OSError when the address is taken."""

    def __init__(self, host: str, port: int) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(HostCollector())
        self._server: WSGIServer
        self._thread: threading.Thread
        self._server, self._thread = start_http_server(port, host, registry)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/metrics"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class HostMonitor:
    """The monitor of a host: call `listen`, then `start` once the tables exist, and `stop` at the end."""

    def __init__(self, *own: Subject) -> None:
        """`own` are the subjects of the process in which the monitor runs."""
        self._own = own
        self._endpoint: Endpoint | None = None
        self._monitor: Monitor | None = None

    def listen(self) -> str | None:
        """Returns the address of `/metrics`, or None without METRICS_PORT. Raises OSError when the address is taken."""
        if settings.METRICS_PORT is None:
            return None
        self._endpoint = Endpoint(settings.METRICS_HOST, settings.METRICS_PORT)
        return self._endpoint.url

    def start(self) -> None:
        operators = OperatorAlerts(settings.HOST_NAME)
        alarms = Alarms(operators.report, clear_seconds=settings.OPERATOR_ALERT_CLEAR_SECONDS)
        self._monitor = Monitor((*SUBJECTS, *self._own), alarms, operators.open_alarms)
        self._monitor.start()

    def stop(self) -> None:
        if self._monitor is not None:
            self._monitor.stop()
        if self._endpoint is not None:
            self._endpoint.close()
