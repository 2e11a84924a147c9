"""A budget is new, the request log holds more than it and takes two seconds to say so: no request is admitted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from analytics.clickhouse.address import resolve_url
from tests.factories.analytics import make_entry, store
from tests.gateway.service import PRICED_MODEL, Gateway, GatewayService
from tests.gateway.wire import ENDPOINT, bearer, body
from tests.slow_proxy import slow_proxy
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS

SLOW_SECONDS = 2.0
BUDGET = 0.5
CALLER = {"x-svc-session-id": "s", "x-svc-user-id": "ann"}


@pytest.fixture(scope="module")
def slow_log(clickhouse_engine: None) -> Iterator[GatewayService]:
    """Two workers that reach the suite's request log late, with the settings of operation."""
    with (
        slow_proxy(resolve_url(), SLOW_SECONDS) as url,
        GatewayService(settings={"CLICKHOUSE_URL": url}) as service,
    ):
        yield service


async def statuses(gateway: Gateway, key: str, requests: int) -> Counter[tuple[int, str]]:
    """Returns the answers, by status and code, to requests that come at once, half of them to either worker."""
    ports = gateway.service.ports
    limits = httpx2.Limits(max_connections=requests)
    async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, limits=limits) as client:

        async def ask(number: int) -> tuple[int, str]:
            url = gateway.service.base_url(ports[number % len(ports)]) + ENDPOINT
            sent = body(model=f"openai/{PRICED_MODEL}", max_tokens=10)
            answer = await client.post(url, json=sent, headers={**bearer(key), **CALLER})
            return answer.status_code, str(answer.json().get("error", {}).get("code"))

        return Counter(await asyncio.gather(*map(ask, range(requests))))


@tabled
@pytest.mark.usefixtures("clickhouse")
async def test_new_budget__spent_in_a_log_that_is_slow__admits_none_of_many_at_once(
    slow_log: GatewayService,
    tmp_path: Path,
    requests: int,
    settings: dict[str, Any],
    of_key: dict[str, Any],
    code: str,
) -> None:
    gateway = slow_log.new_project(base_urls={"openai": "http://127.0.0.1:9"})
    made = gateway.manage("POST", "keys", {"name": "k", "scopes": ["gateway"], **of_key}).json()
    spent = make_entry(
        project_id=gateway.project_id, api_key_id=made["id"], session_id="s", user_id="ann", cost_usd=str(2 * BUDGET)
    )
    await asyncio.to_thread(store, tmp_path, spent)
    if settings:
        assert gateway.manage("PUT", "settings", settings).status_code == 200

    assert await statuses(gateway, made["key"], requests) == {(429, code): requests}
