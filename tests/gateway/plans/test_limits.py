"""Requests within limits: a plan admits them from what its worker has leased, and leaves the limits as stages do."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest
import redis

from gateway.limits.units import recorded_units
from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer, Step
from tests.gateway import service
from tests.gateway.conftest import assert_log_is_clean
from tests.gateway.managed import make_prompt
from tests.gateway.plans.both import PlansService, Seen, seen_in
from tests.gateway.wire import ENDPOINT, bearer, body
from tests.waiting import TIMEOUT_SECONDS

SCRIPT = "limits"
# The first of a minute show how many follow, and are asked about one by one.
REQUESTS = 200
# Seconds of the minute may differ from one worker's answer to the other's, and so may what is settled and leased.
OF_ONE_MOMENT = frozenset(
    {
        "x-ratelimit-reset-requests",
        "x-ratelimit-reset-tokens",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-remaining-requests",
    }
)
OF_ONE_PROJECT = {"project_id": "", "api_key_id": 0, "team_id": 0, "prompt_config_id": ""}
PRICED_MODEL = f"openai/{service.PRICED_MODEL}"

RATES = {"rate_limit_enabled": True, "rate_limit_rpm": 1_000_000, "rate_limit_tpm": 900_000_000}
OF_PROJECT = {**RATES, "monthly_budget_usd": "100000", "budget_hard_stop": True, "session_budget_usd": "100000"}
OF_USERS = {
    "end_user_rpm": 2_000_000,
    "end_user_tpm": 800_000_000,
    "end_user_max_concurrent": 10_000,
    "end_user_monthly_budget_usd": "100000",
}
OF_KEY: dict[str, Any] = {
    "rate_limit_rpm": 500_000,
    "rate_limit_tpm": 2_000_000_000,
    "max_concurrent_requests": 10_000,
    "monthly_budget_usd": 100_000,
    "total_budget_usd": 100_000,
}
OF_TEAM: dict[str, Any] = {**OF_KEY, "rate_limit_rpm": 1_500_000}


@dataclass(frozen=True)
class Limits:
    of_project: dict[str, Any] = field(default_factory=dict)
    of_key: dict[str, Any] = field(default_factory=dict)
    of_team: dict[str, Any] = field(default_factory=dict)
    prompt: str = ""


LIMITS = {
    "all": Limits({**OF_PROJECT, **OF_USERS}, OF_KEY, OF_TEAM),
    # What the prompt adds is reserved, too.
    "all_with_a_prompt": Limits({**OF_PROJECT, **OF_USERS}, OF_KEY, OF_TEAM, "Be kind. " * 100),
    "requests": Limits({"rate_limit_enabled": True, "rate_limit_rpm": 1_000_000}),
    "rates": Limits(RATES),
    "sessions": Limits({"session_budget_usd": "100000"}),
    "month_that_warns": Limits({"monthly_budget_usd": "100000"}),
    "key": Limits(of_key=OF_KEY),
    "users": Limits(OF_USERS),
    "team": Limits(of_team=OF_TEAM),
}


@pytest.fixture(scope="module")
def limited() -> Iterator[PlansService]:
    """A service that leases for long, so that a busy machine has leases too."""
    with PlansService(LIMITS_AHEAD_SECONDS="1") as running:
        yield running
        assert_log_is_clean(running)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.play(SCRIPT, play.answer())
        yield server


class Client:
    """A client of one worker, with a project and a key of its own."""

    def __init__(self, service: PlansService, upstream: ScriptedServer, worker: int, limits: Limits) -> None:
        self.gateway = service.new_project(
            base_urls={"openai": upstream.base_url(SCRIPT)},
            routing={"retry_enabled": False, **limits.of_project},
        )
        self.gateway.upstream = upstream
        self.prompt = make_prompt(self.gateway, limits.prompt).name if limits.prompt else ""
        fields = dict(limits.of_key)
        self.team_id = 0
        if limits.of_team:
            self.team_id = self._made("teams", {"name": "team", **limits.of_team})["id"]
            fields["team_id"] = self.team_id
        made = self._made("keys", {"name": "limited", "scopes": ["gateway"], **fields})
        self.key, self.key_id = made["key"], made["id"]
        self.connection = HTTPConnection("127.0.0.1", service.ports[worker], timeout=TIMEOUT_SECONDS)

    def _made(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        answer = self.gateway.manage("POST", path, content)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def send(self, content: bytes, headers: dict[str, str]) -> tuple[HTTPResponse, bytes]:
        named = {"x-svc-prompt-config": self.prompt} if self.prompt else {}
        self.connection.request("POST", ENDPOINT, content, {**bearer(self.key), **named, **headers})
        response = self.connection.getresponse()
        return response, response.read()


NewClient = Callable[[Limits, int], Client]


@pytest.fixture
def new_client(limited: PlansService, upstream: ScriptedServer) -> Iterator[NewClient]:
    """Makes a client of the worker of this number."""
    with ExitStack() as stack:

        def made(limits: Limits, worker: int = 0) -> Client:
            client = Client(limited, upstream, worker, limits)
            stack.callback(client.connection.close)
            return client

        yield made


def contents(number: int) -> Iterator[tuple[bytes, dict[str, str]]]:
    """Returns requests of several sizes, users and sessions, most of them of one."""
    draw = random.Random(number)
    for _ in range(REQUESTS):
        fields: dict[str, Any] = {"model": PRICED_MODEL, "max_tokens": draw.choice([40, 60, 80])}
        fields["messages"] = [{"role": "user", "content": "a" * draw.randrange(200)}]
        headers = {}
        if draw.random() < 0.9:
            fields["user"] = "ann"
            headers["x-svc-session-id"] = "s1"
        if draw.random() < 0.1:
            headers["x-svc-user-id"] = "bob"
        yield json.dumps(body(**fields)).encode(), headers


def alike(seen: Seen) -> Seen:
    """Leaves out what differs between two projects, and from second to second."""
    headers = [(name, "" if name in OF_ONE_MOMENT else value) for name, value in seen.headers]
    return replace(seen, headers=headers, record={**seen.record, **OF_ONE_PROJECT})


def same_minute(run: Callable[[], None]) -> None:
    """Runs until all of a run fell into one minute, whose figures then are those of the run."""
    while True:
        minute = int(time.time() // 60)
        run()
        if int(time.time() // 60) == minute:
            return


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_limited_requests__by_plans_and_by_stages__are_the_same(
    limited: PlansService, upstream: ScriptedServer, new_client: NewClient, limits: Limits
) -> None:
    seen: list[list[Seen]] = []
    clients: list[Client] = []
    planned_before = limited.planned

    def run() -> None:
        clients[:] = [new_client(limits, worker) for worker in (0, 1)]
        seen[:] = [[], []]
        for content, headers in contents(1):
            for client, found in zip(clients, seen, strict=True):
                upstream.received.clear()
                answer = client.send(content, headers)
                found.append(alike(seen_in(client.gateway, upstream, *answer)))

    same_minute(run)

    for with_plans, without in zip(*seen, strict=True):
        assert with_plans == without
    assert {one.status for one in seen[0]} == {200}
    with closing(redis_of(limited)) as store:
        left = limited.until(lambda: [figures(store, client) for client in clients], are_equal)
    assert are_equal(left)
    by_plans, by_stages = (after - before for after, before in zip(limited.planned, planned_before, strict=True))
    assert by_plans > REQUESTS / 4
    assert by_stages == 0


def redis_of(service: PlansService) -> redis.Redis:
    return redis.Redis.from_url(service.environment["REDIS_URL"])


def figures(store: redis.Redis, client: Client) -> dict[str, int]:
    """Returns what Redis has of the limits of a client: counted, spent, and held by open requests and leases."""
    project, found = client.gateway.project_id, {}
    for key in store.scan_iter(f"svc:limits:{{{project}}}:*"):
        name = key.decode().partition("}:")[2]
        name = name.replace(f"key:{client.key_id}:", "key:").replace(f"team:{client.team_id}:", "team:")
        if name.endswith(":spend"):
            spend: Any = store.hmget(key, "base", "after", "reserved")
            base, after, reserved = (int(value or 0) for value in spend)
            found[name], found[f"{name}:held"] = base + after, reserved
        elif name.endswith((":held", "open")):
            found[f"{name}:held"] = int(store.zcard(key))
        elif name == "leased":
            found["leased:held"] = int(store.hlen(key))
        else:
            kind, _, _ = name.rpartition(":")
            found[kind] = found.get(kind, 0) + int(store.get(key) or 0)
    # What nobody holds has no key, or an empty one.
    return {name: value for name, value in found.items() if value}


def are_equal(found: list[dict[str, int]]) -> bool:
    """Returns whether Redis has come to count the same for both clients, and to hold nothing."""
    return found[0] == found[1] != {} and not held(found[0])


def held(found: dict[str, int]) -> bool:
    return any(name.endswith(":held") for name in found)


def planned_until(client: Client, service: PlansService, content: bytes, headers: dict[str, str]) -> None:
    """Sends requests until a plan has answered one, so that the worker has leased for more."""

    def answered() -> int:
        answer, _ = client.send(content, headers)
        assert answer.status == 200
        return service.planned[0]

    before = service.planned[0]
    assert service.until(answered, lambda planned: planned > before) > before


FAILURES: dict[str, Step] = {
    "status": play.status(500),
    "reset": play.reset,
    "not_conforming": play.raw(200, b"{}"),
}


@pytest.mark.parametrize("step", FAILURES.values(), ids=FAILURES)
def test_failure__of_a_planned_request__is_counted_once(
    limited: PlansService, upstream: ScriptedServer, new_client: NewClient, step: Step
) -> None:
    client = new_client(LIMITS["all"], 0)
    content, headers = next(contents(2))
    planned_until(client, limited, content, headers)
    upstream.play(SCRIPT, step)
    try:
        answer, _ = client.send(content, headers)
    finally:
        upstream.play(SCRIPT, play.answer())

    assert answer.status >= 500
    assert "x-ratelimit-remaining-requests" in answer.headers
    assert is_exact(limited, client)


def test_client__that_leaves_a_planned_request__frees_what_it_holds(
    limited: PlansService, upstream: ScriptedServer, new_client: NewClient
) -> None:
    client = new_client(LIMITS["all"], 0)
    content, headers = next(contents(3))
    planned_until(client, limited, content, headers)
    script = upstream.play(SCRIPT, play.hang)
    try:
        client.connection.request("POST", ENDPOINT, content, {**bearer(client.key), **headers})
        script.wait_for(1)
        client.connection.close()
        assert script.received[-1].gone.wait(TIMEOUT_SECONDS)
    finally:
        upstream.play(SCRIPT, play.answer())

    assert is_exact(limited, client)


def is_exact(service: PlansService, client: Client) -> bool:
    """Returns whether Redis has come to count each request of the client once and to hold nothing for it."""

    def exact() -> bool:
        with closing(redis_of(service)) as store:
            found = figures(store, client)
        records = [entry.record for entry in service.spooled.entries()]
        own = [record for record in records if record.project_id == client.gateway.project_id]
        spent = sum(recorded_units(record.cost_usd) for record in own if record.cost_usd)
        counted = found.get("key:requests"), found.get("key:total:spend", 0)
        return not held(found) and counted == (len(own), spent)

    return service.until(exact, bool)


def test_limit__that_is_near__is_kept_by_plans_and_stages_together(new_client: NewClient) -> None:
    limits = Limits({"rate_limit_enabled": True, "rate_limit_rpm": 300})
    statuses: list[int] = []

    def run() -> None:
        clients = [new_client(limits, worker) for worker in (0, 1)]
        clients[1].key, clients[1].gateway = clients[0].key, clients[0].gateway
        content, headers = next(contents(4))
        statuses[:] = [clients[number % 2].send(content, headers)[0].status for number in range(340)]

    same_minute(run)

    assert statuses.count(200) == 300
    assert set(statuses) == {200, 429}


def test_remaining_requests__of_one_caller__are_counted_down_by_plans_and_stages(
    limited: PlansService, new_client: NewClient
) -> None:
    remaining: list[int] = []
    before = limited.planned[0]

    def run() -> None:
        client = new_client(LIMITS["requests"], 0)
        content, headers = next(contents(7))
        answers = [client.send(content, headers)[0] for _ in range(REQUESTS)]
        remaining[:] = [int(answer.headers["x-ratelimit-remaining-requests"]) for answer in answers]

    same_minute(run)

    assert remaining == [999_999 - number for number in range(REQUESTS)]
    assert limited.planned[0] > before


def test_month__that_is_spent_and_only_warns__is_the_stages(limited: PlansService, new_client: NewClient) -> None:
    client = new_client(Limits({"monthly_budget_usd": "0.0001"}), 0)
    content, headers = next(contents(5))
    before = limited.planned[0]

    answers = [client.send(content, headers)[0] for _ in range(REQUESTS)]

    assert {answer.status for answer in answers} == {200}
    assert "budget is used up" in answers[-1].headers["x-svc-warning"]
    # The first answers come before anything is spent.
    warned = ["x-svc-warning" in answer.headers for answer in answers]
    assert warned == sorted(warned)
    assert limited.planned[0] - before <= warned.count(False)


def test_limits__that_change__are_those_of_the_next_planned_request(
    limited: PlansService, new_client: NewClient
) -> None:
    client = new_client(LIMITS["rates"], 0)
    content, headers = next(contents(6))
    planned_until(client, limited, content, headers)

    limited.set_routing(client.gateway.project_id, rate_limit_rpm=1)

    def status() -> tuple[int, str]:
        answer, _ = client.send(content, headers)
        return answer.status, answer.headers["x-ratelimit-limit-requests"]

    assert limited.until(status, lambda found: found[1] == "1") == (429, "1")
