"""Beat on several hosts: schedulers in this process, whose broker is a list; tests/fleet has whole processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from celery import Celery
from django.db import OperationalError
from django.db.models import F
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from config.supervisor import beat
from config.supervisor.beat import LeasedScheduler
from core.fleet import lease, schedule
from core.fleet.tables import Lease, ScheduledRun

# Beat closes connections, which would end the transaction of a test.
pytestmark = pytest.mark.django_db(transaction=True)

PERIOD = 60.0
SCHEDULE = {"sweep": {"task": "test.sweep", "schedule": PERIOD}}


class Clock:
    """The seconds that beat believes to have passed; the test does not wait for them."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


class Beat(LeasedScheduler):
    def __init__(self, send: Callable[[str], None], work: Callable[[], None] | None = None) -> None:
        app = Celery("test", set_as_current=False)
        app.conf.beat_schedule = SCHEDULE
        app.send_task = self.send_task  # type: ignore[assignment]  # what tasks are sent with
        if work is not None:
            app.task(name="test.sweep", shared=False)(work)
        self._to = send
        super().__init__(app)

    producer: Any = None

    def send_task(self, *args: Any, **options: Any) -> None:
        self._to(args[0])

    def tick_until_idle(self) -> None:
        while not self.tick():
            pass


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    with patch.object(beat, "time", clock):
        yield clock


@pytest.fixture
def sent() -> list[str]:
    return []


def have_run(ago: float) -> None:
    ScheduledRun.objects.update_or_create(name="sweep", defaults={"ran_at": timezone.now() - timedelta(seconds=ago)})


def let_lease_end(clock: Clock) -> None:
    Lease.objects.update(renewed_at=F("renewed_at") - timedelta(seconds=lease.LEASE_SECONDS + 1))
    clock.seconds += lease.LEASE_SECONDS + 1


def test_tick__two_hosts_and_a_task_that_is_due__sent_once(clock: Clock, sent: list[str]) -> None:
    have_run(ago=PERIOD + 1)
    one, two = Beat(sent.append), Beat(sent.append)

    for scheduler in (one, two, one, two):
        scheduler.tick_until_idle()

    assert one.holds
    assert not two.holds
    assert sent == ["test.sweep"]


def test_tick__holder_says_nothing_more__another_goes_on_from_its_last_run(clock: Clock, sent: list[str]) -> None:
    have_run(ago=PERIOD / 2)
    one, two = Beat(sent.append), Beat(sent.append)
    one.tick_until_idle()
    let_lease_end(clock)

    two.tick_until_idle()
    assert two.holds
    assert sent == []
    # The other host scheduled it before: half of the period has passed, and the rest of it passes now.
    have_run(ago=PERIOD + 1)
    let_lease_end(clock)
    two.tick_until_idle()

    assert sent == ["test.sweep"]


def test_tick__holder_that_was_stopped_wakes_up__sends_nothing(clock: Clock, sent: list[str]) -> None:
    have_run(ago=PERIOD + 1)
    one, two = Beat(sent.append), Beat(sent.append)
    # It is stopped between its look at the lease and the sending.
    one._ask()
    Lease.objects.update(renewed_at=F("renewed_at") - timedelta(seconds=lease.LEASE_SECONDS + 1))
    two.tick_until_idle()
    assert sent == ["test.sweep"]

    one.tick_until_idle()

    assert sent == ["test.sweep"]


def test_close__holder_ends_in_order__another_has_it_at_its_next_question(clock: Clock, sent: list[str]) -> None:
    one, two = Beat(sent.append), Beat(sent.append)
    one.tick_until_idle()
    two.tick_until_idle()

    one.close()
    clock.seconds += lease.RENEW_SECONDS
    two.tick_until_idle()

    assert not one.holds
    assert two.holds


def test_tick__database_away__pauses_when_the_lease_has_ended_and_goes_on(
    clock: Clock, sent: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    have_run(ago=PERIOD + 1)
    scheduler = Beat(sent.append)
    with patch.object(lease, "take", side_effect=OperationalError("away")):
        for _ in range(3):
            scheduler.tick()
            clock.seconds += lease.RENEW_SECONDS
    assert not scheduler.holds
    assert sent == []

    scheduler.tick_until_idle()

    assert sent == ["test.sweep"]
    assert caplog.text.count("beat.pauses error=OperationalError") == 1
    assert "beat.goes_on" in caplog.text


def test_tick__last_run_lies_in_the_future__counts_as_now(clock: Clock, sent: list[str]) -> None:
    have_run(ago=-3600)
    scheduler = Beat(sent.append)

    scheduler.tick_until_idle()

    last_run_at = scheduler.schedule["sweep"].last_run_at
    assert last_run_at is not None
    assert last_run_at <= timezone.now()


def test_apply_entry__broker_refuses__said_once_and_the_task_runs_next_time(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: str) -> None:
        raise BrokerError("OOM")

    scheduler = Beat(refuse)
    for _ in range(2):
        have_run(ago=PERIOD + 1)
        let_lease_end(clock)
        scheduler.tick_until_idle()

    assert caplog.text.count("broker.refused") == 1
    scheduler._to = lambda _: None
    have_run(ago=PERIOD + 1)
    let_lease_end(clock)
    scheduler.tick_until_idle()
    assert "broker.recovered" in caplog.text


def asking(answer: bool | Exception) -> Callable[[], None]:
    def question() -> bool:
        if isinstance(answer, Exception):
            raise answer
        return answer

    @schedule.sent_if(question)
    def sweep() -> None:
        raise NotImplementedError

    return sweep


@pytest.mark.parametrize(
    ("answer", "is_sent"),
    [(False, False), (True, True), (RuntimeError("defect"), True), (OperationalError("away"), False)],
)
def test_tick__task_with_a_question__sent_unless_the_database_says_no_or_nothing(
    clock: Clock, sent: list[str], answer: bool | Exception, is_sent: bool
) -> None:
    have_run(ago=PERIOD + 1)
    scheduler = Beat(sent.append, asking(answer))

    scheduler.tick_until_idle()

    assert sent == ["test.sweep"] * is_sent
