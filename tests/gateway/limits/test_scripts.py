"""The scripts against a plain model of what they promise, on a real Redis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from gateway.limits import scripts
from gateway.limits.keys import Scope, requests_key, tokens_key
from tests.gateway.limits.conftest import OwnRedis

PROJECT = "018f0000-0000-7000-8000-000000000001"
MONTH, SESSION = Scope(PROJECT, month="2026-11"), Scope(PROJECT, session_id="s/1 %")
OTHER = Scope(PROJECT, session_id="other")
MINUTE = 29_921_506
KEYS = [
    requests_key(PROJECT, MINUTE),
    tokens_key(PROJECT, MINUTE),
    MONTH.spend,
    MONTH.held,
    SESSION.spend,
    SESSION.held,
]
LEASE_MS = 60_000
NOW = 1_795_290_000_000_000


@dataclass
class Terms:
    requests: int | str = ""
    tokens: int | str = ""
    month: int | str = ""
    session: int | str = ""
    hard: int = 1


COUNTED = Terms(month=2**62, session=2**62)


@dataclass
class Ended:
    """A settlement."""

    name: str
    cost: int | str = 0
    tokens: int = 0


def admit(
    own: OwnRedis, terms: Terms, name: str, *, tokens: int = 1, cost: int = 0, at: int = NOW, **batched: Any
) -> Any:
    answer, *standings = batch(own, terms, (f"{name}|{cost}|{at}", tokens), **{"now": at, **batched})
    return [*answer, *standings]


def settle(
    own: OwnRedis, name: str, *, terms: Terms = COUNTED, tokens: int = 0, cost: int | str = 0, now: int = NOW
) -> Any:
    return batch(own, terms, Ended(name, cost, tokens), now=now)


def batch(
    own: OwnRedis,
    terms: Terms,
    *asked: tuple[str, int] | Ended,
    now: int,
    known: int = 0,
    run: str = "run-1",
    set_at: int = 0,
) -> list[Any]:
    """The answers to settlements and to admissions, and the standings of month and session."""
    limits = (terms.requests, terms.tokens, terms.month, terms.hard, terms.session, LEASE_MS, run, set_at)
    keys, in_session, spends = (KEYS, 1, [known, known]) if terms.session != "" else (KEYS[:4], 0, [known])
    ended = [each for each in asked if isinstance(each, Ended)]
    settlements = columns([(in_session, each.name, each.cost) for each in ended])
    admissions = columns([(in_session, *each) for each in asked if not isinstance(each, Ended)])
    words = (now, sum(each.tokens for each in ended), spends, settlements, admissions)
    settled, admitted, month, *session = own.run(scripts.BATCH, keys, *limits, msgspec.msgpack.encode(words))
    answers = [admitted[at : at + 3] for at in range(0, len(admitted), 3)]
    return [*(settled or [0] * len(ended)), *answers, month, *(session or [[]])]


def columns(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[row[place] for row in rows] for place in range(3)]


def raise_to(own: OwnRedis, scope: Scope, since: int, spent: int, *, final: int = 0) -> Any:
    return own.run(scripts.RAISE, [scope.spend, scope.held], since, spent, final, since)


def spent(own: OwnRedis, scope: Scope) -> tuple[int, int]:
    """Spent and reserved."""
    base, after, reserved = own.client.hmget(scope.spend, "base", "after", "reserved")
    return int(base or 0) + int(after or 0), int(reserved or 0)


@dataclass
class Model:
    """What the limits mean, without Redis."""

    requests: int = 0
    tokens: int = 0
    month: int = 0
    session: int = 0
    held: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def reserved(self) -> int:
        return sum(cost for _, cost in self.held.values())

    def refuses(self, terms: Terms, tokens: int, cost: int) -> str:
        if terms.requests != "" and self.requests + 1 > int(terms.requests):
            return "requests"
        if terms.tokens != "" and self.tokens + tokens > int(terms.tokens):
            return "tokens"
        if terms.month != "" and terms.hard and self.month + self.reserved + cost > int(terms.month):
            return "month"
        if terms.session != "" and self.session + self.reserved + cost > int(terms.session):
            return "session"
        return ""

    def ask(self, terms: Terms, name: str, tokens: int, cost: int) -> str:
        refused = self.refuses(terms, tokens, cost)
        if not refused:
            self.held[name] = (tokens, cost)
            self.requests += 1
            self.tokens += tokens
        return refused


# Some beyond what a double holds: budgets are compared as doubles, amounts are added exactly.
AMOUNT = st.one_of(st.integers(0, 30), st.sampled_from([2**53 - 1, 2**53 + 1, 2**54 + 3]))
BUDGET = st.one_of(st.just(""), st.integers(0, 60), st.just(2**62))


class Limits(RuleBasedStateMachine):
    own: OwnRedis

    @initialize(
        requests=st.one_of(st.just(""), st.integers(1, 6)),
        tokens=st.one_of(st.just(""), st.integers(1, 60)),
        month=BUDGET,
        session=BUDGET,
        hard=st.integers(0, 1),
    )
    def begin(self, requests: Any, tokens: Any, month: Any, session: Any, hard: int) -> None:
        self.own.client.flushall()
        self.terms = Terms(requests, tokens, month, session, hard)
        self.model = Model()
        self.serial = 0

    @rule(
        data=st.data(),
        asked=st.lists(st.tuples(st.integers(0, 30), AMOUNT), max_size=5),
        used=st.lists(st.tuples(st.integers(0, 40), AMOUNT), max_size=5),
    )
    def go_on(self, data: st.DataObject, asked: list[tuple[int, int]], used: list[tuple[int, int]]) -> None:
        """Requests that end and requests that come, in one batch."""
        ended = [self.end(data, *of_one) for of_one in used if self.model.held]
        names = [self.name(cost) for _, cost in asked]
        wanted = [self.model.ask(self.terms, name, *of_one) for name, of_one in zip(names, asked, strict=True)]
        admissions = [(name, tokens) for name, (tokens, _) in zip(names, asked, strict=True)]
        answers = batch(self.own, self.terms, *admissions, *ended, now=NOW + 1000)[len(ended) : -2]
        assert [answer[0].decode() for answer in answers] == wanted

    def name(self, cost: int) -> str:
        self.serial += 1
        return f"r{self.serial}|{cost}|{NOW + self.serial}"

    def end(self, data: st.DataObject, tokens: int, cost: int) -> Ended:
        name = data.draw(st.sampled_from(sorted(self.model.held)))
        reserved, _ = self.model.held.pop(name)
        self.model.tokens += tokens - reserved
        self.model.month += cost
        self.model.session += cost
        as_sent = cost if cost < 2**53 else str(cost)
        return Ended(name, as_sent, tokens - reserved if self.terms.tokens != "" else 0)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "model"):
            return
        if self.terms.requests != "":
            assert int(self.own.client.get(KEYS[0]) or 0) == self.model.requests
        if self.terms.tokens != "" and self.model.requests:
            assert int(self.own.client.get(KEYS[1]) or 0) == self.model.tokens
        for scope, budget, amount in (
            (MONTH, self.terms.month, self.model.month),
            (SESSION, self.terms.session, self.model.session),
        ):
            if budget != "":
                assert spent(self.own, scope) == (amount, self.model.reserved)

    @override
    def teardown(self) -> None:
        if hasattr(self, "model"):
            assert set(self.own.client.zrange(MONTH.held, 0, -1)) == (
                {name.encode() for name in self.model.held} if self.terms.month != "" else set()
            )


def test_scripts__any_course_of_requests__agree_with_the_model(own_redis: OwnRedis) -> None:
    machine = type("LimitsHere", (Limits,), {"own": own_redis})
    chosen = settings(max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=chosen)


def test_refusal__by_the_last_limit__counts_in_none(own_redis: OwnRedis) -> None:
    terms = Terms(requests=10, tokens=1000, month=100, session=5)
    assert admit(own_redis, terms, "a", tokens=10, cost=6)[0] == b"session"
    assert own_redis.client.mget(KEYS[0], KEYS[1]) == [None, None]
    assert spent(own_redis, MONTH) == spent(own_redis, SESSION) == (0, 0)
    assert own_redis.client.zcard(MONTH.held) == 0


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
    told = settle(own_redis, f"a|6|{NOW}", cost=4, now=NOW + 7)
    assert told == [2, [b"0", b"4", 1, str(NOW).encode()], [b"0", b"0", 1, str(NOW + 7).encode()]]
    assert (spent(own_redis, MONTH), spent(own_redis, SESSION)) == ((4, 0), (0, 0))


def test_batch__settles_first_and_admits_in_the_order_in_which_they_ask(own_redis: OwnRedis) -> None:
    terms = Terms(requests=5, tokens=100, month=10, session=10)
    batch(own_redis, terms, (f"a|6|{NOW}", 10), (f"b|4|{NOW}", 10), now=NOW)
    answers = batch(
        own_redis,
        terms,
        (f"c|5|{NOW}", 10),  # there is room when a is settled
        (f"d|5|{NOW}", 10),  # beyond the budgets
        Ended(f"a|6|{NOW}", 1, tokens=-3),
        (f"e|0|{NOW}", 74),  # beyond the tokens
        (f"f|0|{NOW}", 73),
        (f"g|0|{NOW}", 0),
        (f"h|0|{NOW}", 0),
        now=NOW,
    )
    assert answers[:-2] == [
        0,
        [b"", 3, 27],
        [b"month", 3, 27],
        [b"tokens", 3, 27],
        [b"", 4, 100],
        [b"", 5, 100],
        [b"requests", 5, None],
    ]
    assert spent(own_redis, MONTH) == spent(own_redis, SESSION) == (1, 9)


def test_batch__of_several_settlements__tells_which_were_not_counted(own_redis: OwnRedis) -> None:
    terms = Terms(month=100, session=100)
    batch(own_redis, terms, *[(f"{name}|3|{NOW}", 1) for name in "abc"], now=NOW)
    own_redis.client.zrem(SESSION.held, f"b|3|{NOW}")
    ended = [Ended(f"{name}|3|{NOW}", cost) for name, cost in (("a", 1), ("b", 2), ("x", 9), ("c", 4))]
    *answers, month, session = batch(own_redis, terms, *ended, now=NOW + 7)
    assert answers == [0, 2, 3, 0]
    since = str(NOW + 7).encode()
    assert (month, session) == ([b"7", b"0", 1, since], [b"5", b"0", 1, since])


@pytest.mark.parametrize("key", [SESSION.spend, SESSION.held])
def test_batch__whose_session_cannot_be_counted__answers_the_others(own_redis: OwnRedis, key: str) -> None:
    """As of a key that somebody else has written."""
    own_redis.client.set(key, "something else")
    month_only, both = Terms(month=100), Terms(requests=10, month=100, session=100)
    admit(own_redis, month_only, "a", cost=4)
    keys = [*KEYS[:4], SESSION.spend, SESSION.held, OTHER.spend, OTHER.held]
    limits = (both.requests, both.tokens, both.month, both.hard, both.session, LEASE_MS, "run-1", 0)
    ended = columns([(1, f"a|4|{NOW}", 3)])
    asked = columns([(1, f"b|5|{NOW}", 1), (0, f"c|6|{NOW}", 1), (2, f"d|7|{NOW}", 1)])
    own = msgspec.msgpack.encode((NOW, 0, [0, 0, 0], ended, asked))
    settled, admitted, month, session, other = own_redis.run(scripts.BATCH, keys, *limits, own)
    assert isinstance(settled[0], redis.ResponseError)
    assert isinstance(admitted[0], redis.ResponseError)
    assert admitted[3:] == [b"", 1, 0, b"", 2, 0]
    assert (month[:2], session, other[:2]) == ([b"0", b"3"], [], [b"0", b"0"])
    assert (spent(own_redis, MONTH), spent(own_redis, OTHER)) == ((3, 13), (0, 7))
    assert own_redis.client.zrange(OTHER.held, 0, -1) == [f"d|7|{NOW}".encode()]


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
    assert admit(own_redis, Terms(month=100), "a", cost=10, known=95)[0] == b"month"
    assert admit(own_redis, Terms(month=100), "a", cost=5, known=95)[0] == b""


@pytest.mark.parametrize("amount", [2**53 + 1, 9_007_199_254_740_993, 2**62])
def test_amounts__beyond_what_a_double_holds__are_exact(own_redis: OwnRedis, amount: int) -> None:
    terms = Terms(month=2**63 - 1)
    admit(own_redis, terms, "a", cost=1)
    settle(own_redis, f"a|1|{NOW}", cost=str(amount))
    admit(own_redis, terms, "b", cost=1)
    settle(own_redis, f"b|1|{NOW}", cost=1)
    assert spent(own_redis, MONTH) == (amount + 1, 0)


def begin(own: OwnRedis) -> int:
    """A month in doubt since NOW, nothing held."""
    admit(own, Terms(month=1000), "first", cost=4, at=NOW)
    settle(own, f"first|4|{NOW}", cost=3)
    return NOW


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


def test_raise__while_an_earlier_request_is_under_way__waits(own_redis: OwnRedis) -> None:
    begin(own_redis)
    admit(own_redis, Terms(month=1000), "early", cost=4, at=NOW + 10)
    lost = NOW + 20
    settle(own_redis, f"nobody's|0|{NOW}", now=lost)  # a settlement without reservation: from here on the log decides
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
    own_redis.client.zadd(MONTH.held, {f"dead|7|{NOW + 1}": 1})  # its time is over

    answer = admit(own_redis, Terms(month=1000), "next", cost=2, at=NOW + 2)

    assert answer[3][:3] == [b"3", b"0", 1]
    assert spent(own_redis, MONTH) == (3, 2)
    assert own_redis.client.zrange(MONTH.held, 0, -1) == [f"next|2|{NOW + 2}".encode()]


HOUR = 3_600_000_000


def certain(own: OwnRedis) -> int:
    """A month of 3 units of which nothing is in doubt."""
    since = begin(own)
    raise_to(own, MONTH, since, 0, final=1)
    return since


def unsure(own: OwnRedis) -> bool:
    return bool(own.client.hexists(MONTH.spend, "unsure"))


@pytest.mark.parametrize(
    ("asked", "doubted"),
    [
        ({}, False),
        ({"set_at": NOW + 1}, True),
        ({"run": "run-2"}, True),
        ({"now": NOW + HOUR}, False),
        ({"now": NOW + HOUR + 1}, True),
    ],
)
def test_spend__is_doubted__when_something_may_not_have_been_counted(
    own_redis: OwnRedis, asked: dict[str, Any], doubted: bool
) -> None:
    certain(own_redis)
    admit(own_redis, Terms(month=1000), "later", cost=1, **asked)
    assert unsure(own_redis) is doubted
    assert spent(own_redis, MONTH) == (3, 1)
    admit(own_redis, Terms(month=1000), "again", cost=1, **asked)
    assert unsure(own_redis) is doubted


def test_limits__of_an_older_setting__do_not_doubt_again(own_redis: OwnRedis) -> None:
    certain(own_redis)
    admit(own_redis, Terms(month=1000), "new", set_at=NOW + 5, at=NOW + 5)
    raise_to(own_redis, MONTH, NOW + 5, 0, final=1)
    admit(own_redis, Terms(month=1000), "of a worker that does not know yet", set_at=NOW + 1)
    assert not unsure(own_redis)


def test_doubt__never_leaves_a_later_request_in_what_the_log_is_asked_about(own_redis: OwnRedis) -> None:
    certain(own_redis)
    admit(own_redis, Terms(month=1000), "ahead", cost=1, at=NOW + 500, now=NOW + 1)
    settle(own_redis, f"ahead|1|{NOW + 500}", cost=7)
    admit(own_redis, Terms(month=1000), "dead", cost=1, at=NOW + 600, now=NOW + 2)
    own_redis.client.zadd(MONTH.held, {f"dead|1|{NOW + 600}": 1})

    answer = admit(own_redis, Terms(month=1000), "slow", cost=1, at=NOW + 3, now=NOW + 4)

    assert answer[3] == [b"10", b"0", 1, str(NOW + 601).encode()]
    assert spent(own_redis, MONTH) == (10, 1)
    settle(own_redis, f"slow|1|{NOW + 3}", cost=2)
    raise_to(own_redis, MONTH, NOW + 601, 3 + 7 + 5 + 2, final=1)
    assert spent(own_redis, MONTH) == (17, 0)


def test_tokens__of_a_request_that_this_redis_never_admitted__make_no_room(own_redis: OwnRedis) -> None:
    terms = Terms(tokens=100)
    admit(own_redis, terms, "a", tokens=10)
    settle(own_redis, f"lost|0|{NOW}", tokens=-900)
    assert own_redis.client.get(KEYS[1]) == b"0"
    assert own_redis.client.ttl(KEYS[1]) > 0


def test_renewal__keeps_what_is_held_and_makes_nothing_new(own_redis: OwnRedis) -> None:
    admit(own_redis, Terms(month=1000), "a", cost=7)
    name = f"a|7|{NOW}"
    own_redis.client.zadd(MONTH.held, {name: 1})
    own_redis.run(scripts.RENEW, [MONTH.held], LEASE_MS, name, "gone|1|1")
    found: Any = own_redis.client.zrange(MONTH.held, 0, -1, withscores=True)
    assert [kept for kept, _ in found] == [name.encode()]
    assert found[0][1] > 1


def test_since__asked_by_two_workers__is_told_to_one(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    first, second = (own_redis.run(scripts.SINCE, [MONTH.spend, MONTH.held], NOW, 60_000) for _ in range(2))
    assert (first[0], second[0]) == (str(since).encode(), b"")
    assert second[1][2] == 1


def test_since__of_what_is_certain__is_nothing(own_redis: OwnRedis) -> None:
    since = begin(own_redis)
    raise_to(own_redis, MONTH, since, 0, final=1)
    found = own_redis.run(scripts.SINCE, [MONTH.spend, MONTH.held], NOW, 0)
    assert found == [b"", [b"0", b"3", 0, str(since).encode()], b"0"]


def test_keys__of_one_project__lie_on_one_node_of_a_cluster() -> None:
    tags = {key[key.index("{") + 1 : key.index("}")] for key in KEYS}
    assert tags == {PROJECT}
    assert len(set(KEYS)) == len(KEYS)
