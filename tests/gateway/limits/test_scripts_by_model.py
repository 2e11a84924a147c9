"""The limits' scripts against a model of them, over any course of requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.script_calls import (
    KEYS,
    MONTH,
    NOW,
    SESSION,
    Ended,
    Terms,
    batch,
    spent,
)


@dataclass
class Model:
    """A model of the limits' meaning, without Redis."""

    requests: int = 0
    tokens: int = 0
    month: int = 0
    session: int = 0
    reservations: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def reserved(self) -> int:
        return sum(cost for _, cost in self.reservations.values())

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
            self.reservations[name] = (tokens, cost)
            self.requests += 1
            self.tokens += tokens
        return refused


# Some amounts exceed what a double holds exactly: budgets are compared as doubles, amounts are added as integers.
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
        arriving=st.lists(st.tuples(st.integers(0, 30), AMOUNT), max_size=5),
        used=st.lists(st.tuples(st.integers(0, 40), AMOUNT), max_size=5),
    )
    def go_on(self, data: st.DataObject, arriving: list[tuple[int, int]], used: list[tuple[int, int]]) -> None:
        """Sends ending and arriving requests in one batch."""
        ended = [self.end(data, *of_one) for of_one in used if self.model.reservations]
        names = [self.name(cost) for _, cost in arriving]
        expected = [self.model.ask(self.terms, name, *of_one) for name, of_one in zip(names, arriving, strict=True)]
        admissions = [(name, tokens) for name, (tokens, _) in zip(names, arriving, strict=True)]
        answers = batch(self.own, self.terms, *admissions, *ended, now=NOW + 1000)[len(ended) : -2]
        assert [answer[0].decode() for answer in answers] == expected

    def name(self, cost: int) -> str:
        self.serial += 1
        return f"r{self.serial}|{cost}|{NOW + self.serial}"

    def end(self, data: st.DataObject, tokens: int, cost: int) -> Ended:
        name = data.draw(st.sampled_from(sorted(self.model.reservations)))
        reserved, _ = self.model.reservations.pop(name)
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
            assert set(self.own.client.zrange(MONTH.reservations, 0, -1)) == (
                {name.encode() for name in self.model.reservations} if self.terms.month != "" else set()
            )


def test_scripts__any_course_of_requests__agree_with_the_model(own_redis: OwnRedis) -> None:
    machine = type("LimitsHere", (Limits,), {"own": own_redis})
    chosen = settings(max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=chosen)
