"""The limits of teams over HTTP: the keys of a team share them, and what a key spent stays where it was."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import httpx2

from tests.fakes.scripted import completion
from tests.fakes.upstream import Connection, Received
from tests.gateway.conftest import Scripted
from tests.gateway.limits.test_caller_admission import PRICED, new_key, post, project
from tests.gateway.service import Gateway
from tests.gateway.wire import assert_error, body
from tests.tables.cases import tabled


def new_team(gateway: Gateway, name: str = "Search", **limits: Any) -> int:
    made = gateway.manage("POST", "teams", {"name": name, **limits})
    assert made.status_code == 201, made.text
    found: int = made.json()["id"]
    return found


def sends(gateway: Gateway, key: str, until: int) -> httpx2.Response:
    """Returns the first answer with this status, of requests that are sent to both workers in turn."""
    numbers = count()
    return gateway.service.until(
        lambda: post(gateway, key, next(numbers), **PRICED), lambda found: found.status_code == until
    )


@tabled
def test_team_limit__used_up_by_one_key__refuses_all_its_keys_and_no_other(
    scripted: Scripted, limits: dict[str, Any], code: str, type: str, repeats: bool
) -> None:
    gateway = project(scripted)
    team = new_team(gateway, **limits)
    _, first = new_key(gateway, team_id=team)
    # A key may have limits of its own beside those of its team.
    second_id, second = new_key(gateway, team_id=team, rate_limit_rpm=1000, monthly_budget_usd=1000)
    _, other = new_key(gateway, team_id=new_team(gateway, "Ads"))

    sends(gateway, first, 429)
    refused = sends(gateway, second, 429)

    assert_error(refused, 429, code, type=type)
    assert ("retry-after" in refused.headers) is repeats
    assert refused.headers.get("x-should-retry") == (None if repeats else "false")
    record = gateway.record(refused)
    assert (record.api_key_id, record.team_id) == (second_id, team)
    assert post(gateway, other, **PRICED).status_code == 200
    assert gateway.post(body(**PRICED)).status_code == 200


def test_concurrency__of_a_team__is_that_of_all_its_keys(scripted: Scripted) -> None:
    arrived, release = threading.Semaphore(0), threading.Event()

    async def step(request: Received, connection: Connection) -> None:
        arrived.release()
        await asyncio.to_thread(release.wait, 60)
        await connection.send_whole(200, json.dumps(completion("x")).encode(), {"content-type": "application/json"})

    gateway = project(scripted, step)
    team = new_team(gateway, max_concurrent_requests=2)
    keys = [new_key(gateway, team_id=team)[1] for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(post, gateway, key, number) for number, key in enumerate(keys)]
        for _ in running:
            assert arrived.acquire(timeout=60)
        try:
            refused = [post(gateway, key, number) for number, key in enumerate(keys)]
        finally:
            release.set()
        assert [each.result().status_code for each in running] == [200, 200]
    for response in refused:
        assert_error(response, 429, "team_concurrent_requests", type="rate_limit_error")
        assert response.headers["retry-after"] == "1"


def test_key__moved_to_another_team__leaves_there_what_it_has_spent(scripted: Scripted) -> None:
    gateway = project(scripted)
    poor = new_team(gateway, "Poor", monthly_budget_usd=0.002)
    rich = new_team(gateway, "Rich", monthly_budget_usd=1000)
    key_id, key = new_key(gateway, team_id=poor)
    _, left_behind = new_key(gateway, team_id=poor)
    assert_error(sends(gateway, key, 429), 429, "team_monthly_budget_exceeded")

    gateway.manage("PATCH", f"keys/{key_id}", {"team_id": rich})

    answered = sends(gateway, key, 200)
    assert gateway.record(answered).team_id == rich
    assert_error(sends(gateway, left_behind, 429), 429, "team_monthly_budget_exceeded")


def test_team__whose_budget_is_raised__admits_within_a_second_of_workers_reading_it(scripted: Scripted) -> None:
    gateway = project(scripted)
    team = new_team(gateway, monthly_budget_usd=0.0005)
    _, key = new_key(gateway, team_id=team)
    message = assert_error(sends(gateway, key, 429), 429, "team_monthly_budget_exceeded")
    assert message.startswith(
        "The team's budget of 0.0005 USD for this month has 0.0005 USD left, and this request may"
    )
    assert message.endswith("raise the budget under Teams")

    gateway.manage("PATCH", f"teams/{team}", {"monthly_budget_usd": 1000})

    assert sends(gateway, key, 200).status_code == 200

    gateway.manage("PATCH", f"teams/{team}", {"monthly_budget_usd": 0})

    used_up = assert_error(sends(gateway, key, 429), 429, "team_monthly_budget_exceeded")
    assert "is used up: an administrator can raise it under Teams" in used_up


def test_rate_headers__report_on_the_team_where_it_leaves_least(scripted: Scripted) -> None:
    gateway = project(scripted, rate_limit_enabled=True, rate_limit_rpm=1000)
    _, key = new_key(gateway, team_id=new_team(gateway, rate_limit_rpm=40), rate_limit_rpm=100_000)

    headers = gateway.service.until(
        lambda: post(gateway, key).headers, lambda found: found.get("x-ratelimit-limit-requests") == "40"
    )

    assert 0 <= int(headers["x-ratelimit-remaining-requests"]) < 40
