"""Two web workers of one service see one circuit and one latency window."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.fakes.scripted import Script, ScriptedServer, answer, status
from tests.gateway.conftest import PATIENT
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import body


@pytest.fixture(scope="module")
def pair() -> Iterator[GatewayService]:
    with GatewayService(settings=PATIENT) as running:
        yield running


@pytest.fixture
def project(pair: GatewayService, upstream: ScriptedServer) -> tuple[Gateway, Script, Script]:
    """Provider openai wants to be left alone for a minute, provider groq answers."""
    broken = upstream.play("health-broken", status(429, headers={"retry-after": "60"}))
    working = upstream.play("health-working", answer())
    urls = {"openai": upstream.base_url("health-broken"), "groq": upstream.base_url("health-working")}
    return pair.new_project(base_urls=urls), broken, working


def ask(gateway: Gateway, port: int, model: str, **fields: Any) -> httpx2.Response:
    return gateway.post(body(model=model, **fields), port=port)


def latencies(gateway: Gateway, port: int) -> dict[str, dict[str, Any]]:
    """GET provider-latency, as that worker answers it."""
    headers = {"authorization": f"Bearer {gateway.key}", "x-project-id": gateway.project_id}
    url = f"{gateway.service.base_url(port)}/api/llm/metrics/provider-latency"
    answered = gateway.service.client.get(url, headers=headers)
    assert answered.status_code == 200, answered.text
    return {row["provider"]: row for row in answered.json()["providers"]}


def test_circuit__opened_by_one_worker__spares_the_target_at_the_other(
    pair: GatewayService, project: tuple[Gateway, Script, Script]
) -> None:
    gateway, broken, working = project
    first, second = pair.ports
    assert ask(gateway, first, "openai/gpt-4o").status_code == 503

    # Workers tell each other within half a second.
    found = pair.until(lambda: latencies(gateway, second)["openai"], lambda row: row["status"] == "down")
    asked = len(broken.received)
    answered = ask(gateway, second, "openai/gpt-4o", models=["groq/llama-3.3-70b"])

    assert found["models"][0]["circuit"] == "open"
    assert answered.status_code == 200
    assert answered.headers["x-svc-provider"] == "groq"
    assert len(broken.received) == asked
    assert len(working.received) == 1


def test_window__filled_by_both_workers__is_one(pair: GatewayService, project: tuple[Gateway, Script, Script]) -> None:
    gateway, _, working = project
    for port in pair.ports * 4:
        assert ask(gateway, port, "groq/llama-3.3-70b").status_code == 200

    for port in pair.ports:
        ask_groq = partial(lambda port: latencies(gateway, port)["groq"], port)
        found = pair.until(ask_groq, lambda row: row["samples"] >= 8)
        assert (found["samples"], found["status"], found["error_rate"]) == (8, "healthy", 0.0)
        assert 0 < found["p50_ms"] <= found["p95_ms"] <= found["p99_ms"]
    assert len(working.received) == 8
