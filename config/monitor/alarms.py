from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from config.monitor.state import HostState
from config.monitor.subjects import store_alarms
from core.processes.monitoring import Alarm, Subject

logger = logging.getLogger("config.monitor")

# The callback `tell(alarm, is_over)` must not block.
Tell = Callable[[Alarm, bool], None]


def active_alarms(found: HostState, subjects: Sequence[Subject]) -> list[Alarm]:
    return [*store_alarms(found.stores), *_of_subjects(found, subjects)]


def _of_subjects(found: HostState, subjects: Iterable[Subject]) -> Iterator[Alarm]:
    for subject in subjects:
        if subject.name in found.found:
            yield from subject.alarms(found.found[subject.name])


@dataclass
class _Known:
    alarm: Alarm
    since: float
    held: float
    is_notified: bool = False


class Alarms:
    """The alarms that operators have been notified of. Not thread-safe."""

    def __init__(self, tell: Tell, *, clear_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clear_seconds = clear_seconds
        self._clock = clock
        self._known: dict[tuple[str, str], _Known] = {}

    @property
    def notified(self) -> list[str]:
        return [known.alarm.text for known in self._known.values() if known.is_notified]

    def resume(self, alarms: Iterable[Alarm]) -> None:
        now = self._clock()
        for alarm in alarms:
            self._known.setdefault(_key(alarm), _Known(alarm, now, now)).is_notified = True

    def look(self, held: Iterable[Alarm]) -> None:
        now = self._clock()
        for alarm in held:
            known = self._known.setdefault(_key(alarm), _Known(alarm, now, now))
            known.alarm, known.held = alarm, now
            if not known.is_notified and now - known.since >= alarm.after:
                known.is_notified = True
                logger.error("alarm.raised kind=%s subject=%s", alarm.kind, alarm.subject)
                self._tell(alarm, False)
        for key, known in list(self._known.items()):
            if known.held == now or (known.is_notified and now - known.held < self._clear_seconds):
                continue
            del self._known[key]
            if known.is_notified:
                logger.warning("alarm.over kind=%s subject=%s", known.alarm.kind, known.alarm.subject)
                self._tell(known.alarm, True)


def _key(alarm: Alarm) -> tuple[str, str]:
    return alarm.kind, alarm.subject
