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

from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.script_calls import (
    CALLER_SCOPES,
    CALLER_SETS,
    CALLERS,
    MONTH,
    NOW,
    Ended,
    Terms,
    caller_of,
    run_batch,
    spent,
)
from tests.night import examples


@dataclass
class Figures:
    """The use of one holder of limits: the project, which all requests belong to, the team, the key or the
    user."""

    requests: int = 0
    tokens: int = 0
    spent: int = 0
    reserved: int = 0
    open: int = 0


Callers = frozenset[str]


@dataclass
class Model:
    """A model of the limits' meaning, without Redis."""

    project: Figures = field(default_factory=Figures)
    callers: dict[str, Figures] = field(default_factory=lambda: {name: Figures() for name in CALLERS})
    reservations: dict[str, tuple[int, int, Callers]] = field(default_factory=dict)

    def holder(self, limit: str) -> Figures:
        """Returns the figures that a limit of this name bounds."""
        name = caller_of(limit)
        return self.callers[name] if name else self.project

    def refuses(self, terms: Terms, tokens: int, cost: int, callers: Callers) -> str:
        limits = {name: limit for name, limit in terms.callers.items() if caller_of(name) in callers}
        checks: list[tuple[str, Any, int]] = [("requests", terms.requests, 1), ("tokens", terms.tokens, tokens)]
        for name in CALLERS:
            checks += [(f"{name}_requests", limits.get(f"{name}_requests", ""), 1)]
            checks += [(f"{name}_tokens", limits.get(f"{name}_tokens", ""), tokens)]
        checks += [(f"{name}_concurrency", limits.get(f"{name}_concurrency", ""), 1) for name in CALLERS]
        checks += [("month", terms.month if terms.hard else "", cost)]
        checks += [(name, limits.get(name, ""), cost) for name in CALLER_SCOPES]
        checks += [("session", terms.session, cost)]
        for name, limit, more in checks:
            if limit != "" and self.used(name) + more > int(limit):
                has_left = name in ("month", "session", *CALLER_SCOPES)
                return f"{name}|{max(int(limit) - self.used(name), 0)}" if has_left else name
        return ""

    def used(self, limit: str) -> int:
        """Returns what counts already for a limit of this name."""
        figures = self.holder(limit)
        measure = limit.removeprefix(f"{caller_of(limit)}_")
        used = {"requests": figures.requests, "tokens": figures.tokens, "concurrency": figures.open}
        return used.get(measure, figures.spent + figures.reserved)

    def holders(self, callers: Callers) -> list[Figures]:
        return [self.project, *(self.callers[name] for name in callers)]

    def ask(self, terms: Terms, name: str, tokens: int, cost: int, callers: Callers) -> str:
        refused = self.refuses(terms, tokens, cost, callers)
        if not refused:
            self.reservations[name] = (tokens, cost, callers)
            for figures in self.holders(callers):
                figures.requests += 1
                figures.tokens += tokens
                figures.reserved += cost
                figures.open += 1
        return refused

    def end(self, name: str, tokens: int, cost: int) -> tuple[int, Callers]:
        """Returns the reserved tokens, and the callers of the request."""
        reserved, reserved_cost, callers = self.reservations.pop(name)
        for figures in self.holders(callers):
            figures.tokens += tokens - reserved
            figures.spent += cost
            figures.reserved -= reserved_cost
            figures.open -= 1
        return reserved, callers


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
        arriving=st.lists(st.tuples(st.integers(0, 30), AMOUNT, st.sampled_from(CALLER_SETS)), max_size=5),
        used=st.lists(st.tuples(st.integers(0, 40), AMOUNT), max_size=5),
    )
    def go_on(self, data: st.DataObject, arriving: list[tuple[int, int, Callers]], used: list[tuple[int, int]]) -> None:
        """Sends ending and arriving requests in one batch."""
        ended = [self.end(data, *of_one) for of_one in used if self.model.reservations]
        names = [self.name(cost) for _, cost, _ in arriving]
        expected = [self.model.ask(self.terms, name, *of_one) for name, of_one in zip(names, arriving, strict=True)]
        admissions = [(name, tokens, callers) for name, (tokens, _, callers) in zip(names, arriving, strict=True)]
        answers = run_batch(self.own, self.terms, *admissions, *ended, now=NOW + 1000)[len(ended) : -1]
        assert [answer[0].decode() for answer in answers] == expected

    def name(self, cost: int) -> str:
        self.serial += 1
        return f"r{self.serial}|{cost}|{NOW + self.serial}"

    def end(self, data: st.DataObject, tokens: int, cost: int) -> Ended:
        name = data.draw(st.sampled_from(sorted(self.model.reservations)))
        reserved, callers = self.model.end(name, tokens, cost)
        as_sent = cost if cost < 2**53 else str(cost)
        return Ended(name, as_sent, tokens - reserved, callers)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "model"):
            return
        for (requests, tokens), (name, requests_limit, tokens_limit) in self.terms.counters():
            figures = self.model.holder(name)
            if requests_limit is not False:
                assert int(self.own.client.get(requests) or 0) == figures.requests
            if tokens_limit is not False and figures.requests:
                assert int(self.own.client.get(tokens) or 0) == figures.tokens
        for key, (name, _) in self.terms.places():
            assert self.own.client.zcard(key) == self.model.holder(name).open
        for scope, (name, *_) in self.terms.budgets():
            figures = self.model.holder(name)
            assert spent(self.own, scope) == (figures.spent, figures.reserved)

    def teardown(self) -> None:
        if hasattr(self, "model"):
            assert set(self.own.client.zrange(MONTH.reservations, 0, -1)) == (
                {name.encode() for name in self.model.reservations} if self.terms.month != "" else set()
            )


def test_scripts__any_course_of_requests__agree_with_the_model(own_redis: OwnRedis) -> None:
    machine = type("LimitsHere", (Limits,), {"own": own_redis})
    chosen = settings(
        max_examples=examples(15, 60), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=chosen)
