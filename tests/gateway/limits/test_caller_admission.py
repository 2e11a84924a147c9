"""The limits of API keys and end users over HTTP: status, code and headers, and that a refusal consumes nothing."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx2
import pytest
import redis

from gateway.limits.keys import Scope, caller_part, month_of, open_key, requests_key
from tests.fakes.scripted import answer, completion
from tests.fakes.upstream import Connection, Received
from tests.gateway.conftest import Scripted
from tests.gateway.service import PRICED_MODEL, Gateway
from tests.gateway.wire import assert_error, body
from tests.tables.cases import tabled

PRICED: dict[str, Any] = {"model": f"openai/{PRICED_MODEL}", "max_tokens": 100}


def project(scripted: Scripted, *steps: Any, **settings: Any) -> Gateway:
    gateway, _ = scripted(*(steps or (answer(),)))
    gateway.service.set_routing(gateway.project_id, retry_enabled=False, **settings)
    return gateway


def new_key(gateway: Gateway, **limits: Any) -> tuple[int, str]:
    made = gateway.manage("POST", "keys", {"name": "k", "scopes": ["gateway"], **limits})
    assert made.status_code == 201, made.text
    return made.json()["id"], made.json()["key"]


def post(gateway: Gateway, key: str, number: int = 0, **sent: Any) -> httpx2.Response:
    return gateway.post(body(**sent), key=key, port=gateway.service.ports[number % 2])


@tabled
def test_key_limit__used_up__refuses_that_key_alone(
    scripted: Scripted, limits: dict[str, Any], code: str, type: str, repeats: bool
) -> None:
    gateway = project(scripted)
    key_id, key = new_key(gateway, **limits)
    answers = [post(gateway, key, number, **PRICED) for number in range(60)]

    refused = [found for found in answers if found.status_code == 429]
    assert answers[0].status_code == 200, answers[0].text
    assert refused
    assert_error(refused[-1], 429, code, type=type)
    assert ("retry-after" in refused[-1].headers) is repeats
    assert refused[-1].headers.get("x-should-retry") == (None if repeats else "false")
    assert gateway.record(refused[-1]).api_key_id == key_id
    assert gateway.post(body(**PRICED)).status_code == 200


def test_rate_headers__report_on_the_limit_that_leaves_least(scripted: Scripted) -> None:
    gateway = project(scripted, rate_limit_enabled=True, rate_limit_rpm=1000, rate_limit_tpm=50_000)
    _, tight = new_key(gateway, rate_limit_rpm=50)
    _, loose = new_key(gateway, rate_limit_rpm=100_000, rate_limit_tpm=100_000)

    def limits(key: str) -> list[str | None]:
        headers = post(gateway, key, max_tokens=10).headers
        return [headers.get(f"x-ratelimit-limit-{kind}") for kind in ("requests", "tokens")]

    for key, expected in ((tight, ["50", "50000"]), (loose, ["1000", "50000"])):
        assert gateway.service.until(partial(limits, key), lambda found, e=expected: found == e) == expected  # type: ignore[misc]


@pytest.mark.parametrize(("user", "code"), [("", "key_concurrent_requests"), ("ann", "user_concurrent_requests")])
def test_concurrency__beyond_the_limit__is_refused_until_a_request_ends(
    scripted: Scripted, user: str, code: str
) -> None:
    arrived, release = threading.Semaphore(0), threading.Event()

    async def step(request: Received, connection: Connection) -> None:
        arrived.release()
        await asyncio.to_thread(release.wait, 60)
        await connection.send_whole(200, json.dumps(completion("x")).encode(), {"content-type": "application/json"})

    gateway = project(scripted, step, end_user_max_concurrent=2)
    key_id, key = new_key(gateway, **({} if user else {"max_concurrent_requests": 2}))
    sent: dict[str, Any] = {"user": user} if user else {}
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(post, gateway, key, number, **sent) for number in range(2)]
        for _ in running:
            assert arrived.acquire(timeout=60)
        try:
            refused = [post(gateway, key, number, **sent) for number in range(4)]
        finally:
            release.set()
        assert [each.result().status_code for each in running] == [200, 200]
    for response in refused:
        assert_error(response, 429, code, type="rate_limit_error")
        assert response.headers["retry-after"] == "1"
    with redis.Redis.from_url(gateway.service.environment["REDIS_URL"]) as client:
        place = open_key(gateway.project_id, caller_part(user_id=user) if user else caller_part(key_id))
        assert gateway.service.until(lambda: client.zcard(place), lambda count: count == 0) == 0
    assert post(gateway, key, **sent).status_code == 200


def test_refusal__by_the_last_limit__consumes_nothing_of_the_others(scripted: Scripted) -> None:
    gateway = project(scripted, rate_limit_enabled=True, rate_limit_rpm=1000, session_budget_usd="0.000001")
    key_id, key = new_key(
        gateway, rate_limit_rpm=1000, max_concurrent_requests=1, total_budget_usd=5, monthly_budget_usd=5
    )
    sent = partial(gateway.post, body(**PRICED), key=key, headers={"x-svc-session-id": "s"})

    refused = gateway.service.until(sent, lambda found: found.status_code == 429)

    assert_error(refused, 429, "session_budget_exceeded", type="budget_error")
    record = gateway.record(refused)
    minute, month = record.ts // 60_000_000, month_of(record.ts)
    with redis.Redis.from_url(gateway.service.environment["REDIS_URL"]) as client:
        assert client.get(requests_key(gateway.project_id, minute, caller_part(key_id))) is None
        assert client.zcard(open_key(gateway.project_id, caller_part(key_id))) == 0
        for scope in (Scope(gateway.project_id, month=month, key_id=key_id), Scope(gateway.project_id, key_id=key_id)):
            assert client.zcard(scope.reservations) == 0
            assert int(client.hget(scope.spend, "reserved") or 0) == 0


def test_rotated_key__shares_its_limits_with_the_earlier_secret(scripted: Scripted) -> None:
    gateway = project(scripted)
    key_id, old = new_key(gateway, monthly_budget_usd=0.0005)
    assert_error(post(gateway, old, **PRICED), 429, "key_monthly_budget_exceeded", type="budget_error")
    new = gateway.manage("POST", f"keys/{key_id}/rotate", {"grace_seconds": 600}).json()["key"]

    found = gateway.service.until(lambda: post(gateway, new, **PRICED), lambda found: found.status_code != 401)

    assert_error(found, 429, "key_monthly_budget_exceeded", type="budget_error")


@tabled
def test_limit_of_every_user__used_up__refuses_that_user_alone(
    scripted: Scripted, limits: dict[str, Any], code: str, type: str
) -> None:
    gateway = project(scripted, **limits)

    def ask(number: int) -> httpx2.Response:
        return gateway.post(body(**PRICED, user="ann"), port=gateway.service.ports[number % 2])

    answers: list[httpx2.Response] = []
    while not any(found.status_code == 429 for found in answers) and len(answers) < 200:
        answers.append(ask(len(answers)))

    assert answers[0].status_code == 200, answers[0].text
    assert_error(answers[-1], 429, code, type=type)
    for headers in ({"x-svc-user-id": "bob"}, {}):
        sent = body(**PRICED, user="ann") if headers else body(**PRICED)
        assert gateway.post(sent, headers=headers).status_code == 200


def test_limit_by_name__takes_the_place_of_that_for_every_user(scripted: Scripted) -> None:
    gateway = project(scripted, end_user_monthly_budget_usd="0.000001")
    free = gateway.manage("POST", "end-user-limits", {"user_id": "free"}).json()
    gateway.manage("POST", "end-user-limits", {"user_id": "tight", "monthly_budget_usd": 0.0000001})

    def becomes(user: str, status: int) -> httpx2.Response:
        return gateway.service.until(
            lambda: gateway.post(body(**PRICED), headers={"x-svc-user-id": user}),
            lambda found: found.status_code == status,
        )

    assert_error(becomes("any", 429), 429, "user_monthly_budget_exceeded", type="budget_error")
    assert " of 0.0000001 USD " in assert_error(becomes("tight", 429), 429, "user_monthly_budget_exceeded")
    assert becomes("free", 200).status_code == 200
    gateway.manage("DELETE", f"end-user-limits/{free['id']}")
    assert_error(becomes("free", 429), 429, "user_monthly_budget_exceeded")
