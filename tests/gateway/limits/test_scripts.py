"""The limits' scripts on a real Redis, case by case."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import redis

from gateway.limits import scripts
from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.script_calls import (
    KEYS,
    LEASE_MS,
    MONTH,
    NOW,
    OTHER,
    PROJECT,
    SESSION,
    Ended,
    Terms,
    admit,
    batch,
    columns,
    settle,
    spent,
)


def test_refusal__by_the_last_limit__counts_in_none(own_redis: OwnRedis) -> None:
    terms = Terms(requests=10, tokens=1000, month=100, session=5)
    assert admit(own_redis, terms, "a", tokens=10, cost=6)[0] == b"session|5"
    assert own_redis.client.mget(KEYS[0], KEYS[1]) == [None, None]
    assert spent(own_redis, MONTH) == spent(own_redis, SESSION) == (0, 0)
    assert own_redis.client.zcard(MONTH.reservations) == 0


def test_admission__says_what_is_used(own_redis: OwnRedis) -> None:
    terms = Terms(requests=10, tokens=1000, month=100, session=50)
    admit(own_redis, terms, "a", tokens=10, cost=6)
    answer = admit(own_redis, terms, "b", tokens=20, cost=7)
    assert answer == [b"", 2, 30, [b"0", b"0", 1, str(NOW).encode()], [b"0", b"0", 1, str(NOW).encode()]]
    assert spent(own_redis, MONTH) == spent(own_redis, SESSION) == (0, 13)


def test_settlement__of_what_was_reserved__is_counted(own_redis: OwnRedis) -> None:
    admit(own_redis, Terms(month=100, session=50), "a", cost=6)
    assert settle(own_redis, f"a|6|{NOW}", cost=4)[0] == 0
    assert spent(own_redis, MONTH) == spent(own_redis, SESSION) == (4, 0)


def test_settlement__that_one_scope_does_not_know__tells_of_that_one(own_redis: OwnRedis) -> None:
    admit(own_redis, Terms(month=100), "a", cost=6)
    reply = settle(own_redis, f"a|6|{NOW}", cost=4, now=NOW + 7)
    assert reply == [2, [b"0", b"4", 1, str(NOW).encode()], [b"0", b"0", 1, str(NOW + 7).encode()]]
    assert (spent(own_redis, MONTH), spent(own_redis, SESSION)) == ((4, 0), (0, 0))


def test_batch__settles_first_and_admits_in_the_order_in_which_they_ask(own_redis: OwnRedis) -> None:
    terms = Terms(requests=5, tokens=100, month=10, session=10)
    batch(own_redis, terms, (f"a|6|{NOW}", 10), (f"b|4|{NOW}", 10), now=NOW)
    answers = batch(
        own_redis,
        terms,
        (f"c|5|{NOW}", 10),  # Request c has room once a is settled.
        (f"d|5|{NOW}", 10),  # The cost exceeds the budgets.
        Ended(f"a|6|{NOW}", 1, tokens=-3),
        (f"e|0|{NOW}", 74),  # The tokens exceed the limit.
        (f"f|0|{NOW}", 73),
        (f"g|0|{NOW}", 0),
        (f"h|0|{NOW}", 0),
        now=NOW,
    )
    assert answers[:-2] == [
        0,
        [b"", 3, 27],
        [b"month|0", 3, 27],
        [b"tokens", 3, 27],
        [b"", 4, 100],
        [b"", 5, 100],
        [b"requests", 5, 100],
    ]
    assert spent(own_redis, MONTH) == spent(own_redis, SESSION) == (1, 9)


def test_batch__of_several_settlements__tells_which_were_not_counted(own_redis: OwnRedis) -> None:
    terms = Terms(month=100, session=100)
    batch(own_redis, terms, *[(f"{name}|3|{NOW}", 1) for name in "abc"], now=NOW)
    own_redis.client.zrem(SESSION.reservations, f"b|3|{NOW}")
    ended = [Ended(f"{name}|3|{NOW}", cost) for name, cost in (("a", 1), ("b", 2), ("x", 9), ("c", 4))]
    *answers, month, session = batch(own_redis, terms, *ended, now=NOW + 7)
    assert answers == [0, 2, 3, 0]
    since = str(NOW + 7).encode()
    assert (month, session) == ([b"7", b"0", 1, since], [b"5", b"0", 1, since])


@pytest.mark.parametrize("key", [SESSION.spend, SESSION.reservations])
def test_batch__whose_session_cannot_be_counted__answers_the_others(own_redis: OwnRedis, key: str) -> None:
    """The session's key has a type of another program."""
    own_redis.client.set(key, "something else")
    admit(own_redis, Terms(month=100), "a", cost=4)
    keys = [*KEYS[:4], SESSION.spend, SESSION.reservations, OTHER.spend, OTHER.reservations]
    budget = ("month", 100, True, 3_456_000, "0", 0.0)
    subjects: Any = [([1], [], [], [1, 2]), ([1], [], [], [1]), ([1], [], [], [1, 3])]
    ended = columns([(1, f"a|4|{NOW}", 3, 0, 0)], 5)
    admissions = columns([(1, f"b|5|{NOW}", 1), (2, f"c|6|{NOW}", 1), (3, f"d|7|{NOW}", 1)], 3)
    own = msgspec.msgpack.encode(
        (NOW, False, [("", 10, False)], [], [budget, budget, budget], subjects, ended, admissions, [], ([], []))
    )
    settled, admitted, _, _, month, session, other = own_redis.run(scripts.BATCH, keys, LEASE_MS, "run-1", own)
    assert isinstance(settled[0], redis.ResponseError)
    assert isinstance(admitted[0], redis.ResponseError)
    assert admitted[3:] == [b"", 1, 0, b"", 2, 0]
    assert (month[:2], session, other[:2]) == ([b"0", b"3"], [], [b"0", b"0"])
    assert (spent(own_redis, MONTH), spent(own_redis, OTHER)) == ((3, 13), (0, 7))
    assert own_redis.client.zrange(OTHER.reservations, 0, -1) == [f"d|7|{NOW}".encode()]


def test_counters_of_a_minute__do_not_outlive_it_for_long(own_redis: OwnRedis) -> None:
    for name in "abc":
        admit(own_redis, Terms(requests=10, tokens=100), name, tokens=0 if name == "a" else 5)
    assert own_redis.client.mget(KEYS[0], KEYS[1]) == [b"3", b"10"]
    assert 0 < own_redis.client.ttl(KEYS[0]) <= 120
    assert 0 < own_redis.client.ttl(KEYS[1]) <= 7200


def test_month__that_only_warns__admits_and_counts(own_redis: OwnRedis) -> None:
    assert admit(own_redis, Terms(month=5, hard=0), "a", cost=9)[0] == b""
    assert spent(own_redis, MONTH) == (0, 9)


def test_known_spend__of_a_worker__counts_where_redis_was_lost(own_redis: OwnRedis) -> None:
    assert admit(own_redis, Terms(month=100), "a", cost=10, known=95)[0] == b"month|5"
    assert admit(own_redis, Terms(month=100), "a", cost=5, known=95)[0] == b""


@pytest.mark.parametrize("amount", [2**53 + 1, 9_007_199_254_740_993, 2**62])
def test_amounts__beyond_what_a_double_holds__are_exact(own_redis: OwnRedis, amount: int) -> None:
    terms = Terms(month=2**63 - 1)
    admit(own_redis, terms, "a", cost=1)
    settle(own_redis, f"a|1|{NOW}", cost=str(amount))
    admit(own_redis, terms, "b", cost=1)
    settle(own_redis, f"b|1|{NOW}", cost=1)
    assert spent(own_redis, MONTH) == (amount + 1, 0)


def test_tokens__of_a_request_that_this_redis_never_admitted__make_no_room(own_redis: OwnRedis) -> None:
    terms = Terms(tokens=100)
    admit(own_redis, terms, "a", tokens=10)
    settle(own_redis, f"lost|0|{NOW}", terms=terms, tokens=-900)
    assert own_redis.client.get(KEYS[1]) == b"0"
    assert own_redis.client.ttl(KEYS[1]) > 0


def test_renewal__keeps_what_is_held_and_makes_nothing_new(own_redis: OwnRedis) -> None:
    admit(own_redis, Terms(month=1000), "a", cost=7)
    name = f"a|7|{NOW}"
    own_redis.client.zadd(MONTH.reservations, {name: 1})
    own_redis.run(scripts.RENEW, [MONTH.reservations], LEASE_MS, name, "gone|1|1")
    found: Any = own_redis.client.zrange(MONTH.reservations, 0, -1, withscores=True)
    assert [stored for stored, _ in found] == [name.encode()]
    assert found[0][1] > 1


def test_keys__of_one_project__lie_on_one_node_of_a_cluster() -> None:
    tags = {key[key.index("{") + 1 : key.index("}")] for key in KEYS}
    assert tags == {PROJECT}
    assert len(set(KEYS)) == len(KEYS)
