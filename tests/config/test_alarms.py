"""Operators are notified once when an alarm begins and once when it ends."""

from __future__ import annotations

from config.monitor.alarms import Alarms
from core.monitoring import Alarm

AWAY = Alarm("store_away", "The redis store does not answer.", "redis", after=30.0)
DISK = Alarm("disk_low", "1 MiB are left for VAR_DIR.")


class Told:
    def __init__(self) -> None:
        self.now = 1000.0
        self.messages: list[tuple[str, bool]] = []
        self.alarms = Alarms(self.tell, clear_seconds=60.0, clock=lambda: self.now)

    def tell(self, alarm: Alarm, is_over: bool) -> None:
        self.messages.append((alarm.kind, is_over))

    def look(self, *held: Alarm, after: float = 0.0) -> None:
        self.now += after
        self.alarms.look(held)


def test_alarm__held_on_and_on__told_once_and_once_that_it_is_over() -> None:
    told = Told()
    for _ in range(5):
        told.look(DISK, after=1)
    assert told.messages == [("disk_low", False)]
    assert told.alarms.notified == [DISK.text]

    told.look(after=1)
    told.look(after=61)
    told.look(after=61)

    assert told.messages == [("disk_low", False), ("disk_low", True)]
    assert told.alarms.notified == []


def test_alarm__that_needs_time__shorter_spells_are_not_told() -> None:
    told = Told()
    for _ in range(3):
        told.look(AWAY, after=20)
        told.look(AWAY, after=20)
        told.look(after=20)
    assert told.messages == []

    told.look(AWAY)
    told.look(AWAY, after=31)
    assert told.messages == [("store_away", False)]


def test_alarm__flickering__told_once() -> None:
    told = Told()
    for _ in range(20):
        told.look(DISK, after=5)
        told.look(after=5)
    assert told.messages == [("disk_low", False)]


def test_alarm__told_of_in_an_earlier_life__told_when_it_is_over_and_not_again() -> None:
    told = Told()
    told.alarms.resume([DISK, AWAY])
    told.look(DISK)
    told.look(DISK, after=61)
    assert told.messages == [("store_away", True)]


def test_alarm__of_two_subjects__each_its_own() -> None:
    told = Told()
    other = Alarm("store_away", "The analytics store does not answer.", "analytics", after=30.0)
    told.look(AWAY, other)
    told.look(AWAY, other, after=31)
    told.look(other, after=1)
    told.look(other, after=61)
    assert told.messages == [("store_away", False), ("store_away", False), ("store_away", True)]
