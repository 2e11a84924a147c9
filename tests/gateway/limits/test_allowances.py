"""What workers lease of the limits ahead: never more than the limits allow, and returned when it is not used."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
import msgspec
import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given, settings

from core.caller_limits import CallerLimits
from core.keys.services import KeyRecord
from gateway.limits import open_batches, rate
from gateway.limits.claims import Admission, Claim, Reservation
from gateway.limits.figures import Figures
from gateway.limits.keys import (
    MINUTE_US,
    Scope,
    caller_part,
    minute_of,
    month_of,
    open_key,
    requests_key,
    tokens_key,
)
from gateway.limits.minute_limits import Caller
from gateway.limits.rate import Rate
from gateway.pipeline.plan.leased import LeasedLimits
from gateway.project_settings.limits import ProjectLimits
from gateway.project_settings.settings import ProjectSettings
from gateway.snapshot.project import ProjectSnapshot
from tests.gateway.limits.conftest import OwnRedis
from tests.gateway.limits.workers import PROJECT, Worker, now_us, spent, worker
from tests.night import examples
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS, eventually

WORKERS = 4
# As in operation, and more, for a machine on which requests follow each other slowly.
AHEAD_SECONDS, LONG_AHEAD_SECONDS = 0.1, 5.0
KEY_ID = 7
UNIT = Decimal(10) ** -10
# What one lease may take of what a limit has left.
SHARE = 32


@pytest.fixture
def eager_leases() -> Iterator[None]:
    """Lets workers lease ahead as soon as a few requests have followed each other, and report often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rate, "_WINDOW_SECONDS", 0.0005)
        patch.setattr(open_batches, "MAX_WAIT_SECONDS", 0.004)
        yield


@pytest.fixture
def kept_leases() -> Iterator[None]:
    """Lets workers lease ahead at once, and keep it until their next request that asks Redis."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rate, "_WINDOW_SECONDS", 0.0)
        patch.setattr(open_batches, "MAX_WAIT_SECONDS", 3600.0)
        yield


@dataclass
class Limits:
    """The limits of the project and of its key, None for one that does not exist; budgets are in units."""

    requests: int | None = None
    tokens: int | None = None
    month: int | None = None
    session: int | None = None
    key_requests: int | None = None
    key_tokens: int | None = None
    key_total: int | None = None
    concurrency: int | None = None

    @property
    def of_project(self) -> dict[str, Any]:
        return {
            "requests_per_minute": self.requests,
            "tokens_per_minute": self.tokens,
            "monthly_budget_usd": _dollars(self.month),
            "session_budget_usd": _dollars(self.session),
            "hard_stop": True,
        }

    @cached_property
    def caller(self) -> Caller:
        key = CallerLimits(
            requests_per_minute=self.key_requests,
            tokens_per_minute=self.key_tokens,
            total_budget_usd=_dollars(self.key_total),
            concurrent_requests=self.concurrency,
        )
        return Caller(KEY_ID, key)


def _dollars(units: int | None) -> Decimal | None:
    return None if units is None else units * UNIT


@dataclass
class Truth:
    """What requests have really used, whatever Redis and the workers believe."""

    limits: Limits
    requests: Counter[int] = field(default_factory=Counter)
    tokens: Counter[int] = field(default_factory=Counter)
    cost: int = 0
    sessions: Counter[str] = field(default_factory=Counter)
    open: int = 0

    def begin(self, reservation: Reservation) -> None:
        claim = reservation.claim
        self.requests[claim.minute] += 1
        self.open += 1
        self._add(reservation, claim.tokens, claim.cost)
        self.check()

    def end(self, reservation: Reservation, tokens: int, cost: int) -> None:
        self.open -= 1
        self._add(reservation, tokens - reservation.claim.tokens, cost - reservation.claim.cost)

    def _add(self, reservation: Reservation, tokens: int, cost: int) -> None:
        claim = reservation.claim
        self.tokens[claim.minute] += tokens
        self.cost += cost
        self.sessions[claim.session_id] += cost

    def check(self) -> None:
        limits = self.limits
        checks = [
            (max(self.requests.values()), limits.requests),
            (max(self.requests.values()), limits.key_requests),
            (max(self.tokens.values()), limits.tokens),
            (max(self.tokens.values()), limits.key_tokens),
            (self.cost, limits.month),
            (self.cost, limits.key_total),
            (max((cost for name, cost in self.sessions.items() if name), default=0), limits.session),
            (self.open, limits.concurrency),
        ]
        assert [check for check in checks if check[1] is not None and check[0] > check[1]] == []


@dataclass
class Burst:
    """Requests of one worker that follow each other; every `keeps`-th stays open until the end. Plans admit them where
    they can, and where `fails` find that the provider cannot be asked every third time."""

    worker: int
    requests: int
    session: str
    tokens: int
    cost: int
    keeps: int
    has_plans: bool
    fails: bool


@asynccontextmanager
async def workers(
    own: OwnRedis, limits: Limits, count: int = WORKERS, ahead: float = LONG_AHEAD_SECONDS
) -> AsyncIterator[list[Worker]]:
    """Starts workers whose requests all arrive in the middle of the next minute, by their clock."""
    arrived_us = (minute_of(now_us()) + 1) * MINUTE_US + MINUTE_US // 2
    async with AsyncExitStack() as stack:
        made = [await stack.enter_async_context(worker(own, ahead=ahead, **limits.of_project)) for _ in range(count)]
        for one in made:
            one.arrived_us = arrived_us
        yield made


async def ask(one: Worker, caller: Caller, **claim: Any) -> Admission:
    asked = msgspec.structs.replace(one.claim(**claim), caller=caller)
    return await one.limiter.admit(one.limits, asked)


def end(one: Worker, admission: Admission, tokens: int, cost: int) -> None:
    assert admission.reservation is not None
    one.limiter.settle(admission.reservation, tokens, cost)


def plan_limits(one: Worker, caller: Caller) -> LeasedLimits:
    """Returns the limits of the worker's plan for requests of the caller's key."""
    project = UUID(PROJECT)
    snapshot = ProjectSnapshot(project, PROJECT, {}, {}, {}, ProjectSettings(), 1, limits=one.limits)
    key = KeyRecord(caller.key_id, project, "", frozenset({"gateway"}), None, caller.key_limits)
    return LeasedLimits(one.limiter, (snapshot, key), None)


def _planned(one: Worker, leased: LeasedLimits, burst: Burst, number: int) -> Admission | None:
    """Returns what a plan admits, without asking Redis; None where the stages have to."""
    claim = one.claim(tokens=burst.tokens, cost=burst.cost, session=burst.session)
    sender, reserved = (burst.session, ""), (burst.tokens, burst.cost)
    admission = leased.admit(claim.request_id, claim.arrived_us, sender, reserved)
    if admission is None or not (burst.fails and number % 3 == 0):
        return admission
    assert admission.reservation is not None
    one.limiter.take_back(admission.reservation)
    return None


class Course:
    """Bursts of four workers at once."""

    def __init__(self, own: OwnRedis, limits: Limits) -> None:
        self.own, self.limits = own, limits
        self.caller = limits.caller
        self.truth = Truth(limits)
        self.left_open: list[tuple[Worker, Reservation]] = []

    async def run(self, bursts: list[Burst]) -> None:
        async with workers(self.own, self.limits) as all_workers:
            of_worker = [[burst for burst in bursts if burst.worker == number] for number in range(WORKERS)]
            await asyncio.gather(*map(self._send, all_workers, of_worker))
            for one, reservation in self.left_open:
                self._end(one, reservation)
            await eventually(self.is_returned)
        assert self.is_returned()

    async def _send(self, one: Worker, bursts: list[Burst]) -> None:
        leased = plan_limits(one, self.caller)
        for burst in bursts:
            for number in range(burst.requests):
                one.arrived_us = now_us()
                admission = _planned(one, leased, burst, number) if burst.has_plans else None
                admission = admission or await ask(
                    one, self.caller, tokens=burst.tokens, cost=burst.cost, session=burst.session
                )
                if admission.reservation is None:
                    continue
                self.truth.begin(admission.reservation)
                if number % burst.keeps == 0:
                    self.left_open.append((one, admission.reservation))
                else:
                    self._end(one, admission.reservation)
                await asyncio.sleep(0)

    def _end(self, one: Worker, reservation: Reservation) -> None:
        claim = reservation.claim
        used = claim.tokens // 2, claim.cost // 3
        self.truth.end(reservation, *used)
        one.limiter.settle(reservation, *used)

    def is_returned(self) -> bool:
        """Returns whether Redis has exactly what was used, to the last digit."""
        truth, limits, client = self.truth, self.limits, self.own.client
        part = caller_part(KEY_ID)
        counted = []
        for minute, requests in truth.requests.items():
            tokens = truth.tokens[minute]
            counted += [
                (limits.requests, requests_key(PROJECT, minute), requests),
                (limits.tokens, tokens_key(PROJECT, minute), tokens),
                (limits.key_requests, requests_key(PROJECT, minute, part), requests),
                (limits.key_tokens, tokens_key(PROJECT, minute, part), tokens),
            ]
        if any(int(client.get(key) or 0) != used for limit, key, used in counted if limit is not None):
            return False
        scopes = [
            (limits.month, Scope(PROJECT, month=month_of(now_us())), truth.cost),
            (limits.key_total, Scope(PROJECT, key_id=KEY_ID), truth.cost),
            *[(limits.session, Scope(PROJECT, session_id=name), truth.sessions[name]) for name in ("a", "b")],
        ]
        if any(spent(self.own, scope) != (cost, 0) for limit, scope, cost in scopes if limit is not None):
            return False
        held: Any = client.keys("*:held")
        return not held and client.zcard(open_key(PROJECT, part)) == 0


def _limit(largest: int) -> st.SearchStrategy[int | None]:
    return st.one_of(st.none(), st.integers(1, largest), st.just(2**40))


LIMITS = st.builds(
    Limits,
    requests=_limit(400),
    tokens=_limit(8_000),
    month=_limit(8_000),
    session=_limit(4_000),
    key_requests=_limit(400),
    key_tokens=_limit(8_000),
    key_total=_limit(8_000),
    concurrency=_limit(300),
)
BURSTS = st.lists(
    st.builds(
        Burst,
        worker=st.integers(0, WORKERS - 1),
        requests=st.integers(1, 80),
        session=st.sampled_from(["", "a", "b"]),
        tokens=st.integers(0, 60),
        cost=st.integers(0, 60),
        keeps=st.integers(1, 20),
        has_plans=st.booleans(),
        fails=st.booleans(),
    ),
    min_size=4,
    max_size=16,
)


@pytest.mark.usefixtures("eager_leases")
def test_four_workers__never_exceed_a_limit_and_return_everything(own_redis: OwnRedis) -> None:
    @settings(max_examples=examples(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
    @given(limits=LIMITS, bursts=BURSTS)
    def run(limits: Limits, bursts: list[Burst]) -> None:
        own_redis.client.flushall()
        asyncio.run(Course(own_redis, limits).run(bursts))

    run()


# The name of a limit, and what requests use of it.
KINDS = ["requests", "tokens", "month", "session", "key_requests", "key_tokens", "key_total", "concurrency"]


@pytest.mark.usefixtures("kept_leases")
def test_refusals__are_early_by_what_others_have_leased_and_by_no_more(own_redis: OwnRedis) -> None:
    async def course(kind: str, limit: int, unit: int, asked: list[int]) -> None:
        amount = 1 if kind in ("requests", "key_requests", "concurrency") else unit
        limits = Limits(**{kind: limit * amount})
        caller = limits.caller
        claim: dict[str, Any] = {"tokens": amount, "cost": amount, "session": "a"}
        async with workers(own_redis, limits) as (last, *others):
            admitted = 0
            for one, requests in zip(others, asked, strict=True):
                for _ in range(requests):
                    admitted += not (await ask(one, caller, **claim)).refused_by
            before = admitted
            while not (await ask(last, caller, **claim)).refused_by:
                admitted += 1
            # Each of the others has leased at most its share of what was left.
            assert limit - len(others) * (limit // SHARE) <= admitted <= limit
            for one in others:
                await one.limiter.close()
            while not (await ask(last, caller, **claim)).refused_by:
                admitted += 1
            assert admitted == limit
            assert before <= limit

    @settings(max_examples=examples(20, 80), deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        kind=st.sampled_from(KINDS),
        limit=st.integers(1, 1500),
        unit=st.integers(1, 50),
        asked=st.lists(st.integers(0, 60), min_size=WORKERS - 1, max_size=WORKERS - 1),
    )
    def run(kind: str, limit: int, unit: int, asked: list[int]) -> None:
        own_redis.client.flushall()
        asyncio.run(course(kind, limit, unit, asked))

    run()


@pytest.mark.usefixtures("kept_leases")
async def test_worker__is_not_refused_for_what_it_has_leased_itself(own_redis: OwnRedis) -> None:
    limits = Limits(requests=400, session=10**9)
    async with workers(own_redis, limits, 1) as (one,):
        admitted = 0
        for number in range(500):
            admitted += not (await ask(one, limits.caller, session=f"s{number % 3}")).refused_by
        assert admitted == 400


async def busy(one: Worker, caller: Caller, requests: int = 100) -> list[Admission]:
    """Sends requests that stay open, for most of which limits have been leased ahead."""
    return [await ask(one, caller, tokens=10, cost=9, session="a") for _ in range(requests)]


PLENTY = Limits(2**40, 2**40, 2**40, 2**40, 2**40, 2**40, 2**40, 10**6)


def figures(own: OwnRedis, arrived_us: int) -> dict[str, int | None]:
    """Returns what an operator reads of the project's minute, and of the key's."""
    project, part = UUID(PROJECT), caller_part(KEY_ID)
    with override_settings(REDIS_URL=own.url):
        read = Figures()
        rates = read.minute(project, minute_of(arrived_us))
        of_key = read.minute(project, minute_of(arrived_us), part)
        return {
            "requests": rates.requests,
            "tokens": rates.tokens,
            "reserved": read._reserved(Scope(PROJECT, key_id=KEY_ID)),
            "open": read.open_requests(project, part),
            "requests of the key": of_key.requests,
        }


def expected(requests: int, *, are_open: bool) -> dict[str, int | None]:
    held = requests if are_open else 0
    return {
        "requests": requests,
        "tokens": 10 * requests,
        "reserved": 9 * held,
        "open": held,
        "requests of the key": requests,
    }


@pytest.mark.usefixtures("eager_leases")
async def test_figures__leave_out_what_is_only_leased(own_redis: OwnRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    async with workers(own_redis, PLENTY, 1) as (one,):
        admissions = await busy(one, PLENTY.caller)
        await eventually(lambda: figures(own_redis, one.arrived_us) == expected(100, are_open=True))
        # From now on what is leased stays leased.
        monkeypatch.setattr(open_batches, "MAX_WAIT_SECONDS", 3600.0)
        admissions += await busy(one, PLENTY.caller)
        counted: Any = own_redis.client.get(requests_key(PROJECT, minute_of(one.arrived_us)))
        assert int(counted) > 200
        shown = figures(own_redis, one.arrived_us)
        assert shown == expected(shown["requests"] or 0, are_open=True)
        assert 100 <= (shown["requests"] or 0) <= 200
        # The worker itself knows.
        assert [admission.requests for admission in admissions] == list(range(1, 201))
        for admission in admissions:
            end(one, admission, 10, 9)
        arrived_us = one.arrived_us
    assert figures(own_redis, arrived_us) == expected(200, are_open=False)


@pytest.mark.usefixtures("eager_leases")
async def test_lease__that_is_not_used__is_returned_soon(own_redis: OwnRedis) -> None:
    async with workers(own_redis, PLENTY, 1) as (one,):
        for admission in await busy(one, PLENTY.caller):
            end(one, admission, 10, 9)
        await eventually(lambda: not own_redis.client.keys("*:leased"))
        counted: Any = own_redis.client.get(requests_key(PROJECT, minute_of(one.arrived_us)))
        assert int(counted) == 100
        assert not own_redis.client.keys("*:held")
        assert not own_redis.client.keys("*:open")


@pytest.mark.usefixtures("kept_leases")
async def test_limits_that_change__are_those_of_the_next_request(own_redis: OwnRedis) -> None:
    limits = Limits(requests=10_000)
    async with workers(own_redis, limits, 2) as (one, other):
        for each in (one, other):
            await busy(each, limits.caller)
        one.limits = other.limits = ProjectLimits(requests_per_minute=100)
        assert (await ask(one, limits.caller)).refused_by == "requests"
        assert (await ask(other, limits.caller)).refused_by == "requests"
        one.limits = ProjectLimits(requests_per_minute=202)
        assert not (await ask(one, limits.caller)).refused_by


@pytest.mark.usefixtures("kept_leases")
async def test_lease__of_a_killed_worker__lapses(own_redis: OwnRedis) -> None:
    limits = Limits(key_total=10**6, concurrency=3000)
    scope, places = Scope(PROJECT, key_id=KEY_ID), open_key(PROJECT, caller_part(KEY_ID))
    async with (
        worker(own_redis, ahead=LONG_AHEAD_SECONDS, lease=0.5) as dead,
        workers(own_redis, limits, 1, 0.0) as (one,),
    ):
        await busy(dead, limits.caller)
        assert spent(own_redis, scope)[1] > 900
        assert own_redis.client.zcard(places) > 100
        # The settlements and the leases of a killed worker never reach Redis.
        dead.limiter._redis.leave("killed")
        dead.limiter._reservations.clear()

        async def ask_again() -> bool:
            admission = await ask(one, limits.caller, cost=1)
            end(one, admission, 0, 0)
            await one.limiter.since(scope)
            return spent(own_redis, scope)[1] <= 1 and own_redis.client.zcard(places) <= 1

        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not await ask_again():  # noqa: ASYNC110 - time passes in another process
                await asyncio.sleep(0.02)


async def test_requests_one_after_the_other__ask_redis_for_few_of_them(own_redis: OwnRedis) -> None:
    limits = Limits(requests=10**6, month=10**12)
    async with workers(own_redis, limits, 1, AHEAD_SECONDS) as (one,):
        await ask(one, limits.caller)

        async def commands_of(requests: int) -> float:
            before: Any = own_redis.client.info("commandstats")
            for _ in range(requests):
                admission = await ask(one, limits.caller, cost=9)
                end(one, admission, 0, 7)
            after: Any = own_redis.client.info("commandstats")
            calls = after["cmdstat_evalsha"]["calls"] - before["cmdstat_evalsha"]["calls"]
            return float(calls / requests)

        # The first requests of a minute show how many follow.
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while await commands_of(200) > 0.2:
                pass


@tabled
def test_rate__of_requests__says_how_many_to_lease_for(
    requests: int, seconds: float, ahead: int, patience: float
) -> None:
    measured = Rate(0.0)
    for _ in range(requests):
        measured.add(Claim("r", PROJECT, "", 0, 3, 1))

    measured.measure(seconds, AHEAD_SECONDS)

    assert (measured.ahead, measured.is_low, measured.tokens_each) == (ahead, ahead == 0, 3)
    assert measured.patience == pytest.approx(patience)


def test_rate__of_too_few_requests_to_tell__stays() -> None:
    measured = Rate(0.0)
    for number in range(6):
        measured.add(Claim("r", PROJECT, "", 0, 1, 1))
        measured.measure(0.04 * number, AHEAD_SECONDS)
        assert (measured.ahead, measured.is_low) == (0, False)
