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
    CALLER_SCOPES,
    CALLERS,
    MONTH,
    NOW,
    Ended,
    Terms,
    run_batch,
    spent,
)


@dataclass
class Figures:
    """The use of one holder of limits: the project, which all requests belong to, or the key and the user, to which
    some do."""

    requests: int = 0
    tokens: int = 0
    spent: int = 0
    reserved: int = 0
    open: int = 0


@dataclass
class Model:
    """A model of the limits' meaning, without Redis."""

    project: Figures = field(default_factory=Figures)
    callers: Figures = field(default_factory=Figures)
    reservations: dict[str, tuple[int, int, bool]] = field(default_factory=dict)

    def refuses(self, terms: Terms, tokens: int, cost: int, plain: bool) -> str:
        of_callers = terms.callers if not plain else {}
        checks = [("requests", terms.requests, self.project.requests + 1)]
        checks += [("tokens", terms.tokens, self.project.tokens + tokens)]
        for name in CALLERS:
            checks += [(f"{name}_requests", of_callers.get(f"{name}_requests", ""), self.callers.requests + 1)]
            checks += [(f"{name}_tokens", of_callers.get(f"{name}_tokens", ""), self.callers.tokens + tokens)]
        checks += [
            (f"{name}_concurrency", of_callers.get(f"{name}_concurrency", ""), self.callers.open + 1)
            for name in CALLERS
        ]
        in_project, in_callers = (each.spent + each.reserved + cost for each in (self.project, self.callers))
        checks += [("month", terms.month if terms.hard else "", in_project)]
        checks += [(name, of_callers.get(name, ""), in_callers) for name in CALLER_SCOPES]
        checks += [("session", terms.session, in_project)]
        return next((name for name, limit, used in checks if limit != "" and used > int(limit)), "")

    def holders(self, plain: bool) -> list[Figures]:
        return [self.project] if plain else [self.project, self.callers]

    def ask(self, terms: Terms, name: str, tokens: int, cost: int, plain: bool) -> str:
        refused = self.refuses(terms, tokens, cost, plain)
        if not refused:
            self.reservations[name] = (tokens, cost, plain)
            for figures in self.holders(plain):
                figures.requests += 1
                figures.tokens += tokens
                figures.reserved += cost
                figures.open += 1
        return refused

    def end(self, name: str, tokens: int, cost: int) -> tuple[int, bool]:
        """Returns the reserved tokens, and whether the request was without limited key and user."""
        reserved, reserved_cost, plain = self.reservations.pop(name)
        for figures in self.holders(plain):
            figures.tokens += tokens - reserved
            figures.spent += cost
            figures.reserved -= reserved_cost
            figures.open -= 1
        return reserved, plain


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
        callers=st.fixed_dictionaries(
            {},
            optional={
                **{f"{name}_requests": st.integers(1, 6) for name in CALLERS},
                **{f"{name}_tokens": st.integers(1, 60) for name in CALLERS},
                **{f"{name}_concurrency": st.integers(1, 4) for name in CALLERS},
                **{name: st.one_of(st.integers(0, 60), st.just(2**62)) for name in CALLER_SCOPES},
            },
        ),
    )
    def begin(self, requests: Any, tokens: Any, month: Any, session: Any, hard: int, callers: dict[str, int]) -> None:
        self.own.client.flushall()
        self.terms = Terms(requests, tokens, month, session, hard, callers)
        self.model = Model()
        self.serial = 0

    @rule(
        data=st.data(),
        arriving=st.lists(st.tuples(st.integers(0, 30), AMOUNT, st.booleans()), max_size=5),
        used=st.lists(st.tuples(st.integers(0, 40), AMOUNT), max_size=5),
    )
    def go_on(self, data: st.DataObject, arriving: list[tuple[int, int, bool]], used: list[tuple[int, int]]) -> None:
        """Sends ending and arriving requests in one batch."""
        ended = [self.end(data, *of_one) for of_one in used if self.model.reservations]
        names = [self.name(cost) for _, cost, _ in arriving]
        expected = [self.model.ask(self.terms, name, *of_one) for name, of_one in zip(names, arriving, strict=True)]
        admissions = [(name, tokens, plain) for name, (tokens, _, plain) in zip(names, arriving, strict=True)]
        answers = run_batch(self.own, self.terms, *admissions, *ended, now=NOW + 1000)[len(ended) : -1]
        assert [answer[0].decode() for answer in answers] == expected

    def name(self, cost: int) -> str:
        self.serial += 1
        return f"r{self.serial}|{cost}|{NOW + self.serial}"

    def end(self, data: st.DataObject, tokens: int, cost: int) -> Ended:
        name = data.draw(st.sampled_from(sorted(self.model.reservations)))
        reserved, plain = self.model.end(name, tokens, cost)
        as_sent = cost if cost < 2**53 else str(cost)
        return Ended(name, as_sent, tokens - reserved, plain)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "model"):
            return
        for (requests, tokens), (name, requests_limit, tokens_limit) in self.terms.counters():
            figures = self.model.callers if name else self.model.project
            if requests_limit is not False:
                assert int(self.own.client.get(requests) or 0) == figures.requests
            if tokens_limit is not False and figures.requests:
                assert int(self.own.client.get(tokens) or 0) == figures.tokens
        for key, _ in self.terms.places():
            assert self.own.client.zcard(key) == self.model.callers.open
        for scope, (name, *_) in self.terms.budgets():
            figures = self.model.project if name in ("month", "session") else self.model.callers
            assert spent(self.own, scope) == (figures.spent, figures.reserved)

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
