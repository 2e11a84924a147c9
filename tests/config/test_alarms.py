from __future__ import annotations

from config.monitor.alarms import Alarms
from core.processes.monitoring import Alarm

AWAY = Alarm("store_away", "The redis store does not answer.", "redis", after=30.0)
DISK = Alarm("disk_low", "1 MiB are left for VAR_DIR.")


class Notices:
    def __init__(self) -> None:
        self.now = 1000.0
        self.messages: list[tuple[str, bool]] = []
        self.alarms = Alarms(self.tell, clear_seconds=60.0, clock=lambda: self.now)

    def tell(self, alarm: Alarm, is_over: bool) -> None:
        self.messages.append((alarm.kind, is_over))

    def look(self, *held: Alarm, after: float = 0.0) -> None:
        self.now += after
        self.alarms.look(held)


def test_alarm__persistent__one_notice_at_its_beginning_and_one_at_its_end() -> None:
    notices = Notices()
    for _ in range(5):
        notices.look(DISK, after=1)
    assert notices.messages == [("disk_low", False)]
    assert notices.alarms.notified == [DISK.text]

    notices.look(after=1)
    notices.look(after=61)
    notices.look(after=61)

    assert notices.messages == [("disk_low", False), ("disk_low", True)]
    assert notices.alarms.notified == []


def test_alarm__with_a_waiting_time__no_notice_of_shorter_spells() -> None:
    notices = Notices()
    for _ in range(3):
        notices.look(AWAY, after=20)
        notices.look(AWAY, after=20)
        notices.look(after=20)
    assert notices.messages == []

    notices.look(AWAY)
    notices.look(AWAY, after=31)
    assert notices.messages == [("store_away", False)]


def test_alarm__flickering__one_notice() -> None:
    notices = Notices()
    for _ in range(20):
        notices.look(DISK, after=5)
        notices.look(after=5)
    assert notices.messages == [("disk_low", False)]


def test_alarm__resumed_after_a_restart__notice_of_its_end_alone() -> None:
    notices = Notices()
    notices.alarms.resume([DISK, AWAY])
    notices.look(DISK)
    notices.look(DISK, after=61)
    assert notices.messages == [("store_away", True)]


def test_alarm__of_two_subjects__each_its_own() -> None:
    notices = Notices()
    other = Alarm("store_away", "The analytics store does not answer.", "analytics", after=30.0)
    notices.look(AWAY, other)
    notices.look(AWAY, other, after=31)
    notices.look(other, after=1)
    notices.look(other, after=61)
    assert notices.messages == [("store_away", False), ("store_away", False), ("store_away", True)]
