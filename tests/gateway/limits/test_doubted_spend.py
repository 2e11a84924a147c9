"""Spend that is in doubt in Redis: its causes, its correction to the request log's figure, and its end."""

from __future__ import annotations

from typing import Any

from gateway.limits import scripts
from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.script_calls import (
    MONTH,
    NOW,
    Terms,
    admit,
    begin,
    raise_to,
    settle,
    spent,
)
from tests.tables.cases import tabled


def test_raise__to_what_the_log_knows_of_earlier_requests__adds_to_what_came_after(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    assert raise_to(own_redis, MONTH, since, 40)[0] == 1
    assert spent(own_redis, MONTH) == (43, 0)


def test_raise__to_less_than_is_known__changes_nothing(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    raise_to(own_redis, MONTH, since, 40)
    raise_to(own_redis, MONTH, since, 9)
    assert spent(own_redis, MONTH) == (43, 0)


def test_raise__compares_numbers_and_not_texts(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    raise_to(own_redis, MONTH, since, 9)
    raise_to(own_redis, MONTH, since, 10)
    assert spent(own_redis, MONTH) == (13, 0)


def test_raise__final__ends_the_doubt(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    assert raise_to(own_redis, MONTH, since, 40, final=1) == [1, [b"40", b"3", 0, str(since).encode()]]


def test_raise__while_an_earlier_request_is_in_flight__waits(own_redis: OwnRedis) -> None:
    begin(own_redis)
    admit(own_redis, Terms(month=1000), "early", cost=4, at=NOW + 10)
    lost = NOW + 20
    settle(
        own_redis, f"nobody's|0|{NOW}", now=lost
    )  # A settlement without a reservation makes the log decide from here on.
    assert raise_to(own_redis, MONTH, lost, 99)[0] == 0

    settle(own_redis, f"early|4|{NOW + 10}", cost=5)

    assert spent(own_redis, MONTH)[0] == 8
    assert raise_to(own_redis, MONTH, lost, 99)[0] == 1
    assert spent(own_redis, MONTH) == (99, 0)


def test_raise__about_another_time__is_refused(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    settle(own_redis, f"nobody's|0|{NOW}", now=since + 5)
    assert raise_to(own_redis, MONTH, since, 1000)[0] == 0


def test_settlement__without_its_reservation__is_left_to_the_log(own_redis: OwnRedis) -> None:
    begin(own_redis)
    doubted, month, session = settle(own_redis, f"unknown|5|{NOW + 1}", cost=50, now=NOW + 9)
    since = str(NOW + 9).encode()
    assert (doubted, month, session) == (3, [b"3", b"0", 1, since], [b"0", b"0", 1, since])


def test_reservation__nobody_renews__lapses_and_leaves_a_doubt(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    raise_to(own_redis, MONTH, since, 0, final=1)
    admit(own_redis, Terms(month=1000), "dead", cost=7, at=NOW + 1)
    own_redis.client.zadd(MONTH.reservations, {f"dead|7|{NOW + 1}": 1})  # The reservation's lease has ended.

    answer = admit(own_redis, Terms(month=1000), "next", cost=2, at=NOW + 2)

    assert answer[3][:3] == [b"3", b"0", 1]
    assert spent(own_redis, MONTH) == (3, 2)
    assert own_redis.client.zrange(MONTH.reservations, 0, -1) == [f"next|2|{NOW + 2}".encode()]


def certain(own: OwnRedis) -> int:
    """Makes a month of 3 units without any doubt."""
    since = begin(own)
    raise_to(own, MONTH, since, 0, final=1)
    return since


def unsure(own: OwnRedis) -> bool:
    return bool(own.client.hexists(MONTH.spend, "unsure"))


@tabled
def test_spend__is_doubted__when_something_may_not_have_been_counted(
    own_redis: OwnRedis, changes: dict[str, Any], doubted: bool
) -> None:
    certain(own_redis)
    admit(own_redis, Terms(month=1000), "later", cost=1, **changes)
    assert unsure(own_redis) is doubted
    assert spent(own_redis, MONTH) == (3, 1)
    admit(own_redis, Terms(month=1000), "again", cost=1, **changes)
    assert unsure(own_redis) is doubted


def test_limits__of_an_older_setting__do_not_doubt_again(own_redis: OwnRedis) -> None:
    certain(own_redis)
    admit(own_redis, Terms(month=1000), "new", set_at=NOW + 5, at=NOW + 5)
    raise_to(own_redis, MONTH, NOW + 5, 0, final=1)
    admit(own_redis, Terms(month=1000), "of a worker that does not know yet", set_at=NOW + 1)
    assert not unsure(own_redis)


def test_doubt__later_request__is_never_before_its_since(own_redis: OwnRedis) -> None:
    certain(own_redis)
    admit(own_redis, Terms(month=1000), "ahead", cost=1, at=NOW + 500, now=NOW + 1)
    settle(own_redis, f"ahead|1|{NOW + 500}", cost=7)
    admit(own_redis, Terms(month=1000), "dead", cost=1, at=NOW + 600, now=NOW + 2)
    own_redis.client.zadd(MONTH.reservations, {f"dead|1|{NOW + 600}": 1})

    answer = admit(own_redis, Terms(month=1000), "slow", cost=1, at=NOW + 3, now=NOW + 4)

    assert answer[3] == [b"10", b"0", 1, str(NOW + 601).encode()]
    assert spent(own_redis, MONTH) == (10, 1)
    settle(own_redis, f"slow|1|{NOW + 3}", cost=2)
    raise_to(own_redis, MONTH, NOW + 601, 3 + 7 + 5 + 2, final=1)
    assert spent(own_redis, MONTH) == (17, 0)


def test_since__two_workers__only_one_queries_the_log(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    first, second = (own_redis.run(scripts.SINCE, [MONTH.spend, MONTH.reservations], NOW, 60_000) for _ in range(2))
    assert (first[0], second[0]) == (str(since).encode(), b"")
    assert second[1][2] == 1


def test_since__of_what_is_certain__is_nothing(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    raise_to(own_redis, MONTH, since, 0, final=1)
    found = own_redis.run(scripts.SINCE, [MONTH.spend, MONTH.reservations], NOW, 0)
    assert found == [b"", [b"0", b"3", 0, str(since).encode()], b"0"]
