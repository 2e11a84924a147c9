"""A crowd over two hosts: limits hold whatever becomes of the requests, and the figures equal those of the log."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import httpx2
import pytest

from gateway.limits.keys import Scope, minute_of, requests_key, tokens_key
from gateway.limits.units import to_units
from tests.fakes.scripted import ScriptedServer, answer
from tests.gateway.limits.logged import Crowd, LoggedService, answer_by_user
from tests.gateway.service import PRICED_MODEL, Gateway
from tests.gateway.wire import ENDPOINT, bearer, body
from tests.night import examples
from tests.waiting import TIMEOUT_SECONDS

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

MODEL = f"openai/{PRICED_MODEL}"
MAX_TOKENS = 500
# The price is 8 dollars for a million tokens.
MAX_UNITS = MAX_TOKENS * 80_000
SECONDS_TO_SETTLE = 120
# Half of them use up every budget; they come as densely as all.
CROWD = examples(500, 1000)
# A worker that waited in vain for the request log waits for it no more for ten seconds (docs/limits.md), and one more
# second is for a look that was under way.
SECONDS_WITHOUT_LOG = 11


@pytest.fixture(scope="module")
def logged() -> Iterator[LoggedService]:
    with LoggedService() as running:
        yield running


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.play("wish", answer_by_user())
        server.play("plain", answer())
        yield server


def project(logged: LoggedService, upstream: ScriptedServer, script: str, **settings: Any) -> Gateway:
    """A project whose limits both workers know."""
    made = logged.new_project(base_urls={"openai": upstream.base_url(script)})
    logged.set_routing(made.project_id, retry_enabled=False, **settings)
    return made


def month_of(gateway: Gateway) -> Scope:
    return Scope(gateway.project_id, month=datetime.now(UTC).strftime("%Y-%m"))


def settled(logged: LoggedService, scope: Scope) -> tuple[int, int]:
    """Returns the counted figure and the log's, once no request is open, nothing is in doubt and both are equal."""

    def look() -> tuple[int, int, int, bool]:
        spent, reserved, unsure = logged.counted(scope)
        return spent, logged.logged_units(scope), reserved, unsure

    spent, in_log, reserved, unsure = logged.until(
        look, lambda found: found[0] == found[1] and found[2:] == (0, False), seconds=SECONDS_TO_SETTLE
    )
    assert (reserved, unsure) == (0, False)
    return spent, in_log


@dataclass(frozen=True)
class Budget:
    """A budget, the scopes that count it, and the headers of a caller whom no other budget but the month's bounds."""

    units: int
    scopes: list[Scope]
    caller: dict[str, str]


def with_budgets(
    logged: LoggedService, gateway: Gateway, month: int, key: int, user: int, session: int
) -> list[Budget]:
    """Gives a project budgets, in requests of the largest cost: the month, each session, a key of its own, and the user
    `ann`."""
    dollars = {"month": month, "key": key, "user": user, "session": session}
    amounts = {name: requests * MAX_UNITS / 10**10 for name, requests in dollars.items()}
    limited = gateway.manage("POST", "keys", {"name": "limited", "scopes": ["gateway"]}).json()
    limits = {"monthly_budget_usd": amounts["key"], "total_budget_usd": amounts["key"], "max_concurrent_requests": 1000}
    assert gateway.manage("PATCH", f"keys/{limited['id']}", limits).status_code == 200
    named = {"user_id": "ann", "monthly_budget_usd": amounts["user"], "rate_limit_tpm": 10**9}
    assert gateway.manage("POST", "end-user-limits", named).status_code == 201
    logged.set_routing(
        gateway.project_id,
        monthly_budget_usd=f"{amounts['month']:f}",
        budget_hard_stop=True,
        session_budget_usd=f"{amounts['session']:f}",
    )
    project, month_name = gateway.project_id, month_of(gateway).month
    of_key = [Scope(project, month=month_name, key_id=limited["id"]), Scope(project, key_id=limited["id"])]
    other = {"x-svc-user-id": "bob"}
    return [
        Budget(key * MAX_UNITS, of_key, {**bearer(limited["key"]), **other}),
        Budget(user * MAX_UNITS, [Scope(project, month=month_name, user_id="ann")], {"x-svc-user-id": "ann"}),
        Budget(session * MAX_UNITS, [Scope(project, session_id="s")], {"x-svc-session-id": "s", **other}),
        Budget(month * MAX_UNITS, [month_of(gateway)], other),
    ]


def test_crowd__on_budgets_with_room_for_some__passes_none_of_them(
    logged: LoggedService, upstream: ScriptedServer
) -> None:
    """Each request has the limited key, the limited user and the session, or not, as it draws: any of the four budgets
    may be the one that refuses. A host is killed while its requests are open."""
    gateway = project(logged, upstream, "wish")
    budgets = with_budgets(logged, gateway, month=80, key=22, user=18, session=14)
    of_key, of_user, of_session, of_month = (budget.caller for budget in budgets)
    # A caller of several limits is the union of their headers, in which the limited user comes after the other one.
    callers = [
        of_month | key | session | user for key, user, session in product(({}, of_key), ({}, of_user), ({}, of_session))
    ]
    crowd = Crowd(gateway, MODEL, MAX_TOKENS, callers=callers)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: asyncio.run(crowd.ask(CROWD, over_seconds=CROWD / 160)))
        logged.until(lambda: crowd.statuses.total(), lambda count: count >= CROWD * 0.3, seconds=60)
        with logged.host_killed(1):
            # The other host goes on alone.
            logged.until(lambda: crowd.statuses.total(), lambda count: count >= CROWD * 0.5, seconds=60)
        running.result()

    # The killed host's reservations expire with the next admission of the scope.
    def small(caller: dict[str, str]) -> int:
        sent = body(model=MODEL, max_tokens=1, user="ok-1")
        return gateway.post(sent, headers=caller).status_code

    for budget in budgets:
        served = logged.until(
            lambda budget=budget: small(budget.caller),  # type: ignore[misc]
            lambda status, budget=budget: not any(logged.counted(scope)[1] for scope in budget.scopes),  # type: ignore[misc]
            seconds=SECONDS_TO_SETTLE,
        )
        assert served in (200, 429)
    # The room that the crowd leaves depends on how many requests were open at once, so on the machine's load.
    largest = body(model=MODEL, max_tokens=MAX_TOKENS, user=f"ok-{MAX_TOKENS}")
    for budget in budgets:
        logged.until(
            lambda budget=budget: gateway.post(largest, headers=budget.caller).status_code,  # type: ignore[misc]
            lambda status: status == 429,
            seconds=120,
        )

    for budget in budgets:
        for scope in budget.scopes:
            spent, in_log = settled(logged, scope)
            assert spent == in_log
            # A request's estimate is never less than what it uses here. Leases are short in this test, and a worker
            # that gets no processor until its lease ends may let one request pass that is not counted.
            assert in_log <= budget.units + MAX_UNITS, (scope, in_log, away_lines(logged))
            # The budget was really used: too little is left for a request of the largest cost.
            assert in_log > budget.units - 2 * MAX_UNITS, (scope, in_log)
    assert {200, 429, 503, 0} <= set(crowd.statuses), crowd.statuses


@pytest.mark.night
def test_thousand_requests__of_the_keys_of_teams__pass_no_team_s_budget_and_are_counted_to_the_last_digit(
    logged: LoggedService, upstream: ScriptedServer
) -> None:
    """Eight keys of two teams ask both hosts at once. One of them moves to the other team meanwhile: what it spent
    before stays where it was, and what was under way goes where it was admitted."""
    gateway = project(logged, upstream, "wish")
    month, units = month_of(gateway).month, {"Search": 25 * MAX_UNITS, "Ads": 40 * MAX_UNITS}
    teams = {
        name: gateway.manage("POST", "teams", {"name": name, "monthly_budget_usd": budget / 10**10}).json()["id"]
        for name, budget in units.items()
    }
    keys = [
        gateway.manage("POST", "keys", {"name": name, "scopes": ["gateway"], "team_id": teams[name]}).json()
        for name in list(teams) * 4
    ]
    callers = [bearer(key["key"]) for key in keys]
    moved, scopes = keys[0], {name: Scope(gateway.project_id, month=month, team_id=teams[name]) for name in teams}
    crowd = Crowd(gateway, MODEL, MAX_TOKENS, seed=4, callers=callers)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: asyncio.run(crowd.ask(1000, over_seconds=4)))
        logged.until(lambda: crowd.statuses.total(), lambda count: count >= 100, seconds=60)
        assert gateway.manage("PATCH", f"keys/{moved['id']}", {"team_id": teams["Ads"]}).status_code == 200
        running.result()
    largest = body(model=MODEL, max_tokens=MAX_TOKENS, user=f"ok-{MAX_TOKENS}")
    for headers in callers:
        refused = logged.until(
            lambda headers=headers: gateway.post(largest, headers=headers),  # type: ignore[misc]
            lambda found: found.status_code == 429,
            seconds=120,
        )
        assert refused.json()["error"]["code"] == "team_monthly_budget_exceeded"

    for name, scope in scopes.items():
        spent, in_log = settled(logged, scope)
        assert spent == in_log
        # Of the tolerance and of the room that is left says the test above.
        assert units[name] - 2 * MAX_UNITS < in_log <= units[name] + MAX_UNITS, (name, in_log, away_lines(logged))
    by_key = {key["id"]: logged.logged_units(Scope(gateway.project_id, month=month, key_id=key["id"])) for key in keys}
    assert sum(by_key.values()) == sum(logged.logged_units(scope) for scope in scopes.values())
    by_team = gateway.manage("GET", "metrics/cost?group_by=team").json()["results"]
    assert {one["name"]: to_units(Decimal(str(one["total_cost_usd"]))) for one in by_team if one["key"]} == {
        name: logged.logged_units(scope) for name, scope in scopes.items()
    }
    assert {200, 429} <= set(crowd.statuses), crowd.statuses


@pytest.mark.night
def test_rates__at_the_border_of_minutes__hold_for_each_minute(logged: LoggedService, upstream: ScriptedServer) -> None:
    rpm, tpm = 120, 40_000
    gateway = project(logged, upstream, "wish", rate_limit_enabled=True, rate_limit_rpm=rpm, rate_limit_tpm=tpm)
    crowd = Crowd(gateway, MODEL, MAX_TOKENS, seed=2)

    def recorded() -> dict[int, tuple[int, int, int]]:
        """Returns by minute the requests that reached a provider, those that were not refused, and the tokens."""
        found: dict[int, tuple[int, int, int]] = {}
        for entry in logged.spooled_entries():
            record = entry.record
            if record.project_id == gateway.project_id and record.status_code != 429:
                called, passed, tokens = found.get(minute_of(record.ts), (0, 0, 0))
                tokens += record.prompt_tokens + record.completion_tokens
                found[minute_of(record.ts)] = called + bool(record.attempts), passed + 1, tokens
        return found

    def counted() -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = {}
        with logged.redis_client() as client:
            for minute in recorded():
                keys = [key(gateway.project_id, minute) for key in (requests_key, tokens_key)]
                requests, tokens = (int(client.get(key) or 0) for key in keys)
                found[minute] = requests, tokens
        return found

    def agree() -> bool:
        redis, records = counted(), recorded()
        # A client may leave before its request is admitted, or before a provider is called.
        return all(
            called <= redis[minute][0] <= passed and redis[minute][1] == tokens
            for minute, (called, passed, tokens) in records.items()
        )

    def full() -> list[int]:
        """Returns the minutes that were full, by requests or by the tokens of open ones."""
        assert logged.until(agree, bool), (counted(), recorded())
        return [minute for minute, (requests, tokens) in counted().items() if requests == rpm or tokens > tpm // 4]

    logged.until(lambda: 60 - time.time() % 60, lambda left: left < 5, seconds=60)
    asyncio.run(crowd.ask(1000, over_seconds=10))
    while len(full()) < 2:
        # On a busy machine few requests may have come before the minute's end, or after it.
        asyncio.run(crowd.ask(250, over_seconds=2))
    found = counted()
    assert max(requests for requests, _ in found.values()) <= rpm
    assert max(tokens for _, tokens in found.values()) <= tpm


def away_lines(logged: LoggedService) -> Counter[str]:
    lines = logged.log.read_text(errors="replace").splitlines()
    return Counter(line.split("gateway.limits ")[1].split()[0] for line in lines if "gateway.limits redis." in line)


def test_redis_paused__requests_are_answered_meanwhile_and_each_worker_says_it_once(
    logged: LoggedService, upstream: ScriptedServer
) -> None:
    gateway = project(logged, upstream, "plain", rate_limit_enabled=True, rate_limit_rpm=100_000)
    for port in logged.ports:
        logged.until(
            lambda port=port: gateway.post(body(), port=port),  # type: ignore[misc]
            lambda found: "x-ratelimit-limit-requests" in found.headers,
        )
    # All workers have noticed what an earlier test did to Redis.
    before = logged.until(lambda: away_lines(logged), lambda found: found["redis.away"] == found["redis.back"])
    logged.redis.send(signal.SIGSTOP)
    try:
        answers = [gateway.post(body(), port=port) for _ in range(40) for port in logged.ports]
    finally:
        logged.redis.send(signal.SIGCONT)
    assert {found.status_code for found in answers} == {200}
    # Only this worker's share of the limit counts now.
    assert int(answers[-1].headers["x-ratelimit-remaining-requests"]) <= 100_000

    def new_lines() -> Counter[str]:
        return away_lines(logged) - before

    assert logged.until(new_lines, lambda found: found["redis.back"] == 2) == {"redis.away": 2, "redis.back": 2}


def test_redis_killed_and_back_empty__spend_comes_from_the_log_to_the_last_digit(
    logged: LoggedService, upstream: ScriptedServer
) -> None:
    budget = 40 * MAX_UNITS
    gateway = project(logged, upstream, "wish", monthly_budget_usd=f"{budget / 10**10:f}", budget_hard_stop=True)
    scope = month_of(gateway)

    def ask(count: int) -> Counter[int]:
        found: Counter[int] = Counter()
        for number in range(count):
            sent = body(model=MODEL, max_tokens=MAX_TOKENS, user=f"ok-{number * 7 % MAX_TOKENS + 1}")
            found[gateway.post(sent, port=logged.ports[number % 2]).status_code] += 1
        return found

    assert ask(20)[200] == 20
    crowd = Crowd(gateway, MODEL, MAX_TOKENS, seed=3)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: asyncio.run(crowd.ask(150, over_seconds=5)))
        logged.until(lambda: crowd.statuses.total(), lambda count: count >= 40, seconds=30)
        logged.empty_redis()
        running.result()
    ask(4)

    spent, in_log = settled(logged, scope)
    assert spent == in_log > 0

    # The budget is used up: the log's figure makes every worker refuse.
    logged.set_routing(gateway.project_id, monthly_budget_usd=f"{in_log / 10**10:f}")
    logged.empty_redis()

    def refused_and_counted() -> bool:
        sent = body(model=MODEL, max_tokens=MAX_TOKENS, user="ok-1")
        statuses = {gateway.post(sent, port=port).status_code for port in logged.ports}
        return statuses == {429} and logged.counted(scope)[0] > 0

    assert logged.until(refused_and_counted, bool)
    spent, in_log = settled(logged, scope)
    assert spent == in_log


async def burst(gateway: Gateway, count: int) -> Counter[tuple[int, bool]]:
    """Returns the answers of both workers to so many simultaneous requests: status, and whether the worker knew of the
    limits."""
    urls = [gateway.service.base_url(port) + ENDPOINT for port in gateway.service.ports]
    limits = httpx2.Limits(max_connections=count, max_keepalive_connections=0)
    sent = body(model=MODEL, max_tokens=1)
    async with httpx2.AsyncClient(timeout=2 * TIMEOUT_SECONDS, limits=limits) as client:
        calls = [client.post(urls[n % 2], json=sent, headers=bearer(gateway.key)) for n in range(count)]
        answers = await asyncio.gather(*calls)
    return Counter((answer.status_code, "x-ratelimit-limit-requests" in answer.headers) for answer in answers)


async def test_burst__of_a_month_that_is_spent__none_admitted(logged: LoggedService, upstream: ScriptedServer) -> None:
    """The budget is spent while no limit counts it; then limits are switched on, and Redis and the workers lose their
    figures."""
    gateway = project(logged, upstream, "plain")
    for port in logged.ports:
        assert gateway.post(body(model=MODEL), port=port).status_code == 200
    spent = logged.until(lambda: logged.logged_units(month_of(gateway)), lambda units: units > 0)
    assert spent > 0
    budget = {"monthly_budget_usd": f"{spent / 10**10:f}", "budget_hard_stop": True}

    rate = {"rate_limit_enabled": True, "rate_limit_rpm": 1_000_000}
    logged.set_routing(gateway.project_id, **budget, **rate)
    # A worker that knows of the limits admits no request, from the first moment on.
    answers = await burst(gateway, examples(300, 1000))
    assert (200, True) not in answers
    while (200, False) in answers:
        answers = await burst(gateway, 10)
        assert (200, True) not in answers

    for number in range(2):
        logged.kill_worker(number)
    assert set(await burst(gateway, 200)) == {(429, True)}

    with logged.redis_client() as client:
        client.flushall()
    for number in range(2):
        logged.kill_worker(number)
    assert set(await burst(gateway, 200)) == {(429, True)}


def test_engine_hung__first_admission_of_an_unknown_month__is_decided_without_it(
    logged: LoggedService, upstream: ScriptedServer
) -> None:
    gateway = project(logged, upstream, "plain", monthly_budget_usd="1", budget_hard_stop=True)

    logged.engine.send(signal.SIGSTOP)
    try:
        for port in logged.ports:
            assert gateway.post(body(model=MODEL), port=port).status_code == 200
    finally:
        logged.engine.send(signal.SIGCONT)
        back = time.monotonic()
        # The tests share the workers, and another one may come next that counts on their waiting for the log.
        logged.until(lambda: time.monotonic() - back, lambda seconds: seconds > SECONDS_WITHOUT_LOG, seconds=60)
