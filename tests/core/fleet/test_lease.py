from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import F

from core.fleet import lease
from core.fleet.schedule import claim_run, last_runs
from core.fleet.tables import Lease
from tests.at_once import at_once

pytestmark = pytest.mark.django_db

LATER = timedelta(seconds=lease.LEASE_SECONDS + 1)


def let_time_pass(by: timedelta) -> None:
    Lease.objects.update(renewed_at=F("renewed_at") - by)


def test_take__held_by_another__not_before_it_has_ended() -> None:
    assert lease.take("test", "one")
    assert not lease.take("test", "two")

    let_time_pass(LATER)

    assert lease.take("test", "two")
    assert not lease.take("test", "one")


def test_take__renewed__goes_on_from_then() -> None:
    assert lease.take("test", "one")
    let_time_pass(LATER / 2)
    assert lease.take("test", "one")
    let_time_pass(LATER / 2)

    assert not lease.take("test", "two")
    holder, age = lease.state("test") or ("", 0.0)
    assert holder == "one"
    assert 10 < age < lease.LEASE_SECONDS


def test_give_back__by_its_holder__another_has_it_at_once() -> None:
    assert lease.take("test", "one")
    lease.give_back("test", "two")
    assert not lease.take("test", "two")

    lease.give_back("test", "one")

    assert lease.take("test", "two")


def test_state__never_held__none() -> None:
    assert lease.state("test") is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("was_held", [False, True])
def test_take__many_at_once__one_has_it(was_held: bool) -> None:
    if was_held:
        lease.take("test", "gone")
        let_time_pass(LATER)
    taken: list[bool] = []

    def ask(number: int) -> None:
        taken.append(lease.take("test", f"host {number}"))
        connection.close()

    at_once(6, ask)

    assert sorted(taken) == [False] * 5 + [True]


def test_claim_run__two_that_know_the_same_last_run__one_may_send() -> None:
    first, second, third = (datetime(2026, 11, 1, 12, 0, second, 7, tzinfo=UTC) for second in (0, 5, 10))
    assert claim_run("task", before=None, at=first)
    assert not claim_run("task", before=None, at=second)
    assert claim_run("task", before=first, at=second)

    assert not claim_run("task", before=first, at=third)
    assert last_runs() == {"task": second}
