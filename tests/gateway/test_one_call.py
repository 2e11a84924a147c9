"""A provider gets each request as often as the record, the headers and the project's retry settings say, also when the
request is sent over a connection that was used before, however long ago."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.fakes import scripted as play
from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.story import Story
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import model_of, staged
from tests.gateway.wire import assert_error, body

HANG_UPS = 1000
CLIENTS = 8
NO_RETRIES = {"retry_enabled": False, "fallback_enabled": False}
FAILED = ("openai", 0, "unavailable")


class Moody:
    """A provider that answers, or takes the request and hangs up, according to its prompt. It counts requests by
    prompt."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.on_used_connections = 0
        self._used: set[Connection] = set()

    async def __call__(self, request: Received, connection: Connection) -> None:
        prompt = json.loads(request.body)["messages"][0]["content"]
        self.calls[prompt] += 1
        if prompt.startswith("answer"):
            self._used.add(connection)
            await play.answer()(request, connection)
            return
        self.on_used_connections += connection in self._used
        # Some connections are closed at once, some after the gateway's loop had time for other work, some by a reset.
        number = int(prompt.split()[-1])
        for _ in range(number % 4):
            await asyncio.sleep(0)
        await (play.reset if number % 2 else play.hang_up)(request, connection)


def ask(gateway: Gateway, prompt: str, *, stream: bool) -> httpx2.Response:
    return gateway.post({**body(stream=stream), "messages": [{"role": "user", "content": prompt}]})


def test_provider__takes_the_request_and_hangs_up__one_call_in_1000_of_1000(routed: Routed) -> None:
    moody = Moody()
    gateway, _ = routed(NO_RETRIES, openai=[moody])

    def hung_up_on(number: int) -> tuple[int, str]:
        # Every tenth request probably gets a new connection, the others one that has served before.
        if number % 10:
            assert ask(gateway, f"answer {number}", stream=number % 3 == 0).status_code == 200
        response = ask(gateway, f"hang up {number}", stream=number % 3 == 1)
        return response.status_code, response.headers["x-svc-retry-count"]

    with ThreadPoolExecutor(CLIENTS) as clients:
        seen = Counter(clients.map(hung_up_on, range(HANG_UPS)))

    assert seen == {(503, "0"): HANG_UPS}
    calls = [count for prompt, count in moody.calls.items() if prompt.startswith("hang up")]
    assert Counter(calls) == {1: HANG_UPS}
    assert moody.on_used_connections > HANG_UPS / 2


@pytest.mark.parametrize("hang_up", [play.hang_up, play.reset], ids=["end", "reset"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_calls__of_a_kept_connection_that_ends__are_those_of_the_record(
    routed: Routed, attempts: int, stream: bool, hang_up: Step
) -> None:
    gateway, scripts = routed({"retry_max_attempts": attempts}, openai=[play.answer(), hang_up])
    assert gateway.post(body(stream=stream)).status_code == 200

    response = gateway.post(body(stream=stream))

    assert_error(response, 503, "provider_unavailable")
    assert len(scripts["openai"].received) == 1 + attempts
    assert response.headers["x-svc-retry-count"] == str(attempts - 1)
    record = gateway.record(response)
    assert [(each.provider, each.status, each.error) for each in record.attempts] == [FAILED] * attempts
    assert record.retry_count == attempts - 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_second_call__answers__first_is_seen_in_headers_record_and_health(routed: Routed, stream: bool) -> None:
    gateway, scripts = routed(openai=[play.answer(), play.hang_up, play.answer()])
    assert gateway.post(body(stream=stream)).status_code == 200

    response = gateway.post(body(stream=stream))

    assert response.status_code == 200
    assert response.headers["x-svc-retry-count"] == "1"
    assert len(scripts["openai"].received) == 3
    record = gateway.record(response)
    assert [(each.status, each.error) for each in record.attempts] == [(0, "unavailable"), (200, "")]

    def health() -> dict[str, Any]:
        (found,) = gateway.manage("GET", "metrics/provider-latency").json()["providers"]
        return dict(found)

    # Workers share the health that they observed a moment later.
    seen = gateway.service.until(health, lambda found: found["error_rate"] == pytest.approx(1 / 3))
    assert seen["error_rate"] == pytest.approx(1 / 3)


def test_every_provider__hangs_up_on_a_kept_connection__is_called_as_often_as_recorded(
    service: GatewayService,
) -> None:
    with staged(service) as stage:
        for provider in distinct_providers():
            if provider not in FAKES:
                continue
            for stream in (False, True):
                script = stage.play(provider, Story(), play.hang_up)
                content = {**body(stream=stream), "model": model_of(provider)}
                assert stage.gateway.post(content).status_code == 200, provider

                response = stage.gateway.post(content)

                assert_error(response, 503, "provider_unavailable")
                record = stage.gateway.record(response)
                assert len(record.attempts) == len(script.received) - 1 == 2, provider
