"""Runs the monitor in threads of the `serve` process, which depends on none of the processes that it monitors."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from wsgiref.simple_server import WSGIServer

import msgspec
from django.conf import settings
from django.db import close_old_connections
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
class _Question:
    """A question with its latest answer. `began` is set while it is under way; times are monotonic."""

    name: str
    ask: Callable[[], dict[str, Any]]
    seconds: float
    due: float = 0.0
    found: dict[str, Any] | None = None
    answered: float = 0.0
    began: float | None = None
    failed: bool = False

    def is_hanging(self, now: float) -> bool:
        return self.began is not None and now - self.began > _HANGING_SECONDS


@dataclass
class Monitor:
    subjects: Sequence[Subject]
    alarms: Alarms
    notified_before: Callable[[], list[Alarm]]
    _questions: dict[str, _Question] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _has_news: threading.Event = field(default_factory=threading.Event)
    _publisher: threading.Thread | None = None
    _resumed: list[Alarm] = field(default_factory=list)
    _started_at: float = field(default_factory=time.time)

    def start(self) -> None:
        for name, ping in STORES.items():
            self._watch([_Question(f"store.{name}", _timed(ping), STORE_SECONDS)])
        asked: defaultdict[str, list[_Question]] = defaultdict(list)
        for subject in self.subjects:
            asked[subject.looks or subject.name].append(_Question(subject.name, subject.ask, subject.seconds))
        for questions in asked.values():
            self._watch(questions)
        keep_thread_running("monitor.resume", self._resume)
        self._publisher = keep_thread_running("monitor.publish", self._publish)

    def stop(self) -> None:
        self._stop.set()
        self._has_news.set()
        if self._publisher is not None:
            self._publisher.join(_PUBLISH_SECONDS)

    def _watch(self, questions: Sequence[_Question]) -> None:
        self._questions |= {one.name: one for one in questions}
        keep_thread_running(f"monitor.{questions[0].name}", partial(self._keep_asking, questions))

    def _keep_asking(self, questions: Sequence[_Question]) -> None:
        while not self._stop.is_set():
            now = time.monotonic()
            for one in questions:
                if one.due <= now:
                    one.due = now + one.seconds
                    self._ask(one)
            self._has_news.set()
            pause = min(one.due for one in questions) - time.monotonic()
            self._stop.wait(max(pause, _PUBLISH_SECONDS))

    def _ask(self, question: _Question) -> None:
        question.began = time.monotonic()
        try:
            question.found = question.ask()
        except Exception as error:
            # The next question may succeed whatever failed now, so each change of state is logged once.
            if not question.failed:
                logger.warning("subject.failed name=%s error=%s", question.name, type(error).__name__)
            question.failed = True
        else:
            if question.failed:
                logger.warning("subject.recovered name=%s", question.name)
            question.failed, question.answered = False, time.monotonic()
        finally:
            close_old_connections()
        question.began = None

    def _resume(self) -> None:
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
            # A pause after the first news lets others join it. A store that hangs brings none, so the wait is bounded.
            self._has_news.wait(STORE_SECONDS)
            if self._stop.wait(_PUBLISH_SECONDS):
                notice.close()
                return

    def _news(self) -> bytes:
        self._has_news.clear()
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
                if (answer := self._questions[f"store.{name}"]).answered or answer.failed or answer.is_hanging(now)
            },
            found={
                subject.name: answer.found
                for subject in self.subjects
                if (answer := self._questions[subject.name]).found is not None
            },
            ages={
                subject.name: now - answer.answered
                for subject in self.subjects
                if (answer := self._questions[subject.name]).answered
            },
        )


def _store(question: _Question, now: float) -> dict[str, Any]:
    up = not question.failed and not question.is_hanging(now)
    return {"up": up, "seconds": (question.found or {}).get("seconds", 0.0)}


def _timed(ping: Callable[[], None]) -> Callable[[], dict[str, Any]]:
    def ask() -> dict[str, Any]:
        began = time.monotonic()
        ping()
        return {"seconds": time.monotonic() - began}

    return ask


class Endpoint:
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
    def __init__(self, *own: Subject) -> None:
        self._own = own
        self._endpoint: Endpoint | None = None
        self._monitor: Monitor | None = None

    def listen(self) -> str | None:
        """Returns the address of `/metrics`, or None without METRICS_PORT. Raises OSError if the address is taken."""
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
