"""Each limit over HTTP: its status, code and headers, the state after a refusal, and requests that no limit refuses."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from typing import Any

import httpx2
import pytest
import redis

from gateway.limits.keys import Scope, minute_of, month_of, requests_key, tokens_key
from gateway.pipeline.reservation import completion_tokens
from gateway.protocol.wire import ChatCompletionRequest, Message, Thinking
from tests.fakes.scripted import DONE, FINISH, ROLE, USAGE, USAGE_CHUNK, answer, chunk, status, stream
from tests.gateway.conftest import Scripted
from tests.gateway.service import PRICED_MODEL, Gateway
from tests.gateway.wire import assert_error, body, read_stream

# The cost is of 11 prompt and 7 completion tokens at 2 and 8 dollars a million.
COST = 780_000
PRICED = {"model": f"openai/{PRICED_MODEL}", "max_tokens": 100}


def limited(scripted: Scripted, *steps: Any, **settings: Any) -> Gateway:
    gateway, _ = scripted(*(steps or (answer(),)))
    gateway.service.set_routing(gateway.project_id, retry_enabled=False, **settings)
    return gateway


def client_of(gateway: Gateway) -> redis.Redis:
    return redis.Redis.from_url(gateway.service.environment["REDIS_URL"])


def until_known(gateway: Gateway, known: Any, **sent: Any) -> httpx2.Response:
    """Repeats the request at both workers until each applies the limits."""

    def ask(port: int) -> httpx2.Response:
        return gateway.post(body(**sent), port=port)

    for port in gateway.service.ports:
        found: httpx2.Response = gateway.service.until(partial(ask, port), known)
        assert known(found), found.headers
    return found


def has_limits(response: httpx2.Response) -> bool:
    return any(name.startswith("x-ratelimit-limit-") for name in response.headers)


def counted(gateway: Gateway, response: httpx2.Response, key: Any) -> int:
    minute = minute_of(gateway.record(response).ts)
    with client_of(gateway) as client:
        found: Any = client.get(key(gateway.project_id, minute))
    return int(found or 0)


def standing(gateway: Gateway, scope: Scope) -> tuple[int, int]:
    """Returns the spend and the reservations."""
    with client_of(gateway) as client:
        found: Any = client.hmget(scope.spend, "base", "after", "reserved")
    base, after, reserved = (int(value or 0) for value in found)
    return base + after, reserved


def test_requests__beyond_the_minute__are_429_and_count_nothing(scripted: Scripted) -> None:
    gateway = limited(scripted, rate_limit_enabled=True, rate_limit_rpm=5, rate_limit_tpm=1_000_000)
    answers = [until_known(gateway, has_limits, max_tokens=10)]
    answers += [gateway.post(body(max_tokens=10), port=gateway.service.ports[n % 2]) for n in range(14)]
    by_minute: dict[int, list[httpx2.Response]] = {}
    for found in answers[1:]:
        by_minute.setdefault(minute_of(gateway.record(found).ts), []).append(found)
    refused = [found for found in answers if found.status_code == 429]
    assert refused
    for minute, found_then in by_minute.items():
        assert sum(found.status_code == 200 for found in found_then) <= 5
        with client_of(gateway) as client:
            assert int(client.get(requests_key(gateway.project_id, minute)) or 0) <= 5
    last = refused[-1]
    assert_error(last, 429, "requests_per_minute", type="rate_limit_error")
    assert 1 <= int(last.headers["retry-after"]) <= 60
    assert last.headers["x-ratelimit-limit-requests"] == "5"
    assert last.headers["x-ratelimit-remaining-requests"] == "0"
    assert last.headers["x-ratelimit-reset-requests"] == f"{last.headers['retry-after']}s"
    record = gateway.record(last)
    assert (record.outcome, record.status_code, record.error_code) == ("error", 429, "requests_per_minute")
    assert (record.cost_usd, record.prompt_tokens, record.completion_tokens) == ("0.0000000000", 0, 0)
    assert not record.attempts


def test_tokens__more_than_the_minute_has__are_429_and_count_nothing(scripted: Scripted) -> None:
    gateway = limited(scripted, rate_limit_enabled=True, rate_limit_tpm=1000)
    served = until_known(gateway, has_limits, max_tokens=10)
    assert served.headers["x-ratelimit-limit-tokens"] == "1000"
    assert "x-ratelimit-limit-requests" not in served.headers
    # Each answer used so many tokens; until it is settled more are reserved.
    used = USAGE["total_tokens"]
    before = gateway.service.until(lambda: counted(gateway, served, tokens_key), lambda tokens: tokens % used == 0)

    never = gateway.post(body(max_tokens=1001))

    message = assert_error(never, 429, "tokens_per_minute", type="rate_limit_error")
    assert "lower max_tokens" in message
    assert "retry-after" not in never.headers  # The request is larger than the limit, so waiting does not help.
    assert counted(gateway, served, tokens_key) == before

    held = [gateway.post(body(max_tokens=960)) for _ in range(2)]
    assert {found.status_code for found in held} <= {200, 429}


def test_tokens__are_what_was_used_after_the_answer(scripted: Scripted) -> None:
    gateway = limited(scripted, rate_limit_enabled=True, rate_limit_tpm=100_000)
    until_known(gateway, has_limits, max_tokens=10)
    answers = [gateway.post(body(max_tokens=500)) for _ in range(5)]
    minutes = {minute_of(gateway.record(found).ts) for found in answers}
    records = [entry.record for found in answers for entry in gateway.service.entries(found.headers["x-request-id"])]
    assert {record.prompt_tokens + record.completion_tokens for record in records} == {18}

    def total() -> int:
        with client_of(gateway) as client:
            return sum(int(client.get(tokens_key(gateway.project_id, minute)) or 0) for minute in minutes)

    found = gateway.service.until(total, lambda value: value % 18 == 0)
    assert found % 18 == 0
    assert found >= 5 * 18


@pytest.mark.parametrize(
    ("settings", "headers", "code", "scope"),
    [
        ({"monthly_budget_usd": "0.002", "budget_hard_stop": True}, {}, "monthly_budget_exceeded", "month"),
        ({"session_budget_usd": "0.002"}, {"x-svc-session-id": "s/1"}, "session_budget_exceeded", "session"),
    ],
)
def test_budget__used_up__is_429_and_reserves_nothing(
    scripted: Scripted, settings: dict[str, Any], headers: dict[str, str], code: str, scope: str
) -> None:
    gateway = limited(scripted, rate_limit_enabled=True, rate_limit_rpm=100_000, **settings)
    until_known(gateway, has_limits)
    # Each request reserves a little more than 0.0008 dollars and spends 0.000078.
    answers = [gateway.post(body(**PRICED), headers=headers) for _ in range(30)]

    refused = [found for found in answers if found.status_code == 429]
    assert refused
    assert answers[0].status_code == 200
    message = assert_error(refused[0], 429, code, type="budget_error")
    assert " of 0.002 USD" in message
    # What is left is less than what the request may cost, or nothing.
    left, may_cost = re.search(
        r"has ([0-9.]+) USD left, and this request may cost up to ([0-9.]+) USD", message
    ).groups()  # type: ignore[union-attr]
    assert 0 < Decimal(left) < Decimal(may_cost) < Decimal("0.001")
    assert "raise the budget under Limits and budgets" in message
    assert "retry-after" not in refused[0].headers
    record = gateway.record(refused[0])
    assert (record.outcome, record.error_code, record.cost_usd) == ("error", code, "0.0000000000")
    month = month_of(record.ts)
    counted_scope = (
        Scope(gateway.project_id, month=month) if scope == "month" else Scope(gateway.project_id, session_id="s/1")
    )
    served = len(answers) - len(refused)

    found = gateway.service.until(lambda: standing(gateway, counted_scope), lambda found: found == (served * COST, 0))
    assert found == (served * COST, 0)
    assert served * COST <= 20_000_000
    if scope == "session":
        assert gateway.post(body(**PRICED), headers={"x-svc-session-id": "another"}).status_code == 200
        assert gateway.post(body(**PRICED)).status_code == 200


def test_month__without_hard_stop__warns_and_serves(scripted: Scripted) -> None:
    gateway = limited(scripted, monthly_budget_usd="0.0000001")

    def warned(found: httpx2.Response) -> bool:
        return "budget is used up" in found.headers.get("x-svc-warning", "")

    found = gateway.service.until(lambda: gateway.post(body(**PRICED)), warned)

    assert found.status_code == 200
    assert warned(found)
    assert warned(gateway.post(body(**PRICED, stream=True)))


def test_model__without_a_price__is_served_with_a_warning_and_reserves_nothing(scripted: Scripted) -> None:
    gateway = limited(
        scripted, monthly_budget_usd="0.0000001", budget_hard_stop=True, rate_limit_enabled=True, rate_limit_rpm=1000
    )
    unpriced = {"model": "openai/nobody-knows-its-price", "max_tokens": 100_000}
    until_known(gateway, has_limits, **unpriced)
    found = [gateway.post(body(**unpriced)) for _ in range(3)]
    assert [response.status_code for response in found] == [200] * 3
    assert "no price is known" in found[0].headers["x-svc-warning"]
    assert gateway.post(body(**PRICED)).status_code == 429


def test_stream__that_was_admitted__is_never_cut(scripted: Scripted) -> None:
    refused = threading.Event()
    words = [chunk({"content": f"w{n} "}) for n in range(10)]
    gateway = limited(
        scripted,
        stream(ROLE, *words[:5], refused, *words[5:], FINISH, USAGE_CHUNK, DONE),
        monthly_budget_usd="0.001",
        budget_hard_stop=True,
        rate_limit_enabled=True,
        rate_limit_rpm=1000,
    )
    received = len(gateway.upstream.received)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(gateway.post, body(**PRICED, stream=True))
        try:
            # Without this wait the second request might be admitted in place of the first.
            gateway.service.until(lambda: len(gateway.upstream.received), lambda count: count > received)
            assert_error(gateway.post(body(**PRICED)), 429, "monthly_budget_exceeded", type="budget_error")
            gateway.service.set_routing(gateway.project_id, monthly_budget_usd="0", rate_limit_rpm=1)
            until_known(gateway, lambda other: other.headers.get("x-ratelimit-limit-requests") == "1", **PRICED)
        finally:
            refused.set()
    assert found.result().status_code == 200
    assert read_stream(found.result().content).text == "".join(f"w{n} " for n in range(10))


def test_failure__of_the_provider__gives_back_what_was_reserved(scripted: Scripted) -> None:
    gateway = limited(scripted, status(500), session_budget_usd="0.0011")
    scope = Scope(gateway.project_id, session_id="s")
    for _ in range(5):
        found = gateway.post(body(**PRICED), headers={"x-svc-session-id": "s"})
        assert found.status_code in (500, 503)
        assert gateway.service.until(lambda: standing(gateway, scope), lambda now: now == (0, 0)) == (0, 0)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 1024),
        ({"max_tokens": 10}, 10),
        ({"max_tokens": 10, "n": 3}, 30),
        ({"max_tokens": 10, "max_completion_tokens": 20}, 20),
        ({"thinking": Thinking("enabled", 2000)}, 3024),
        ({"thinking": Thinking("enabled", 2000), "max_tokens": 4000}, 4000),
    ],
)
def test_estimate__of_an_answer__is_what_the_request_allows(fields: dict[str, Any], expected: int) -> None:
    request = ChatCompletionRequest(model="m", messages=[Message(role="user", content="x")], **fields)
    assert completion_tokens(request) == expected
