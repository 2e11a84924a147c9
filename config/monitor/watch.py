"""Asks each subject again and again, each in a thread of its own: one that hangs holds up none of the others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from config.monitor import state
from config.monitor.alarms import Alarms, holding
from config.monitor.state import HostState
from config.monitor.subjects import STORE_SECONDS, STORES
from core.monitoring import Alarm, Subject

logger = logging.getLogger("config.monitor")

_PUBLISH_SECONDS = 1.0
# A store that takes so long does not answer, whatever it says in the end.
_HANGING_SECONDS = 10.0


@dataclass
class _Asked:
    """What one subject said last. `began` while it is being asked; times from `time.monotonic`."""

    found: dict[str, Any] | None = None
    answered: float = 0.0
    began: float | None = None
    failed: bool = False

    def is_hanging(self, now: float) -> bool:
        return self.began is not None and now - self.began > _HANGING_SECONDS


@dataclass
class Monitor:
    """`start` and `stop`; neither waits for a subject, and no failure of one ends the watch."""

    subjects: Sequence[Subject]
    alarms: Alarms
    told_before: Callable[[], list[Alarm]]
    _asked: dict[str, _Asked] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _publisher: threading.Thread | None = None
    _resumed: list[Alarm] = field(default_factory=list)
    _started_at: float = field(default_factory=time.time)

    def start(self) -> None:
        for name, ping in STORES.items():
            self._begin(f"store.{name}", _timed(ping), STORE_SECONDS)
        for subject in self.subjects:
            self._begin(subject.name, subject.ask, subject.seconds)
        _start("monitor.resume", self._resume)
        self._publisher = _start("monitor.publish", self._publish)

    def stop(self) -> None:
        self._stop.set()
        if self._publisher is not None:
            self._publisher.join(_PUBLISH_SECONDS)

    def _begin(self, name: str, ask: Callable[[], dict[str, Any]], seconds: float) -> None:
        asked = self._asked[name] = _Asked()
        _start(f"monitor.{name}", partial(self._watch, name, asked, ask, seconds))

    def _watch(self, name: str, asked: _Asked, ask: Callable[[], dict[str, Any]], seconds: float) -> None:
        while not self._stop.is_set():
            asked.began = time.monotonic()
            try:
                asked.found = ask()
            except Exception as error:
                # Whatever it is, the next look may go well; one line for each change of state.
                if not asked.failed:
                    logger.warning("subject.failed name=%s error=%s", name, type(error).__name__)
                asked.failed = True
            else:
                if asked.failed:
                    logger.warning("subject.recovered name=%s", name)
                asked.failed, asked.answered = False, time.monotonic()
            asked.began = None
            self._stop.wait(seconds)

    def _resume(self) -> None:
        """What an earlier life of this host told of, as soon as the database says it."""
        while not self._stop.is_set():
            try:
                self._resumed = self.told_before()
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
                # Nobody else would tell of anything any more.
                logger.exception("monitor.failed")
            if self._stop.wait(_PUBLISH_SECONDS):
                notice.close()
                return

    def _news(self) -> bytes:
        found = self.state()
        resumed, self._resumed = self._resumed, []
        self.alarms.resume(resumed)
        self.alarms.look(holding(found, self.subjects))
        found.alarms = self.alarms.told
        return msgspec.json.encode(found)

    def state(self) -> HostState:
        now = time.monotonic()
        return HostState(
            at=time.time(),
            started_at=self._started_at,
            stores={
                name: _store(asked, now)
                for name in STORES
                if (asked := self._asked[f"store.{name}"]).answered or asked.failed or asked.is_hanging(now)
            },
            found={
                subject.name: asked.found
                for subject in self.subjects
                if (asked := self._asked[subject.name]).found is not None
            },
            ages={
                subject.name: now - asked.answered
                for subject in self.subjects
                if (asked := self._asked[subject.name]).answered
            },
        )


def _start(name: str, work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def _store(asked: _Asked, now: float) -> dict[str, Any]:
    up = not asked.failed and not asked.is_hanging(now)
    return {"up": up, "seconds": (asked.found or {}).get("seconds", 0.0)}


def _timed(ping: Callable[[], None]) -> Callable[[], dict[str, Any]]:
    def ask() -> dict[str, Any]:
        began = time.monotonic()
        ping()
        return {"seconds": time.monotonic() - began}

    return ask
