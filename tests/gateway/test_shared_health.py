"""Two web workers of one service see one circuit and one latency window."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx2
import pytest

from tests.fakes.scripted import Script, ScriptedServer, answer, status
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import body


@pytest.fixture
def project(pair: GatewayService, upstream: ScriptedServer) -> tuple[Gateway, Script, Script]:
    """A project whose provider anthropic refuses with a Retry-After of ten minutes, while provider openai answers."""
    broken = upstream.play("health-broken", status(429, headers={"retry-after": "600"}))
    working = upstream.play("health-working", answer())
    urls = {"anthropic": upstream.base_url("health-broken"), "openai": upstream.base_url("health-working")}
    return pair.new_project(base_urls=urls), broken, working


def ask(gateway: Gateway, port: int, model: str, **fields: Any) -> httpx2.Response:
    return gateway.post(body(model=model, **fields), port=port)


def latencies(gateway: Gateway, port: int) -> dict[str, dict[str, Any]]:
    """Returns the answer of GET provider-latency at that worker."""
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
    assert ask(gateway, first, "anthropic/claude-sonnet-4-5").status_code == 503

    # A request with parameters that anthropic lacks shows what a worker knows of its health, and teaches it nothing.
    answered = pair.until(
        lambda: ask(gateway, second, "anthropic/claude-sonnet-4-5", models=["openai/gpt-4o"], n=2),
        lambda response: response.status_code == 200,
    )

    assert answered.status_code == 200
    assert answered.headers["x-svc-provider"] == "openai"
    assert len(broken.received) == 1
    assert len(working.received) == 1
    found = pair.until(lambda: latencies(gateway, second)["anthropic"], lambda row: row["status"] == "down")
    assert found["models"][0]["circuit"] == "open"


def test_window__filled_by_both_workers__is_one(pair: GatewayService, project: tuple[Gateway, Script, Script]) -> None:
    gateway, _, working = project
    for port in pair.ports * 4:
        assert ask(gateway, port, "openai/gpt-4o").status_code == 200

    for port in pair.ports:
        row_at = partial(lambda port: latencies(gateway, port)["openai"], port)
        found = pair.until(row_at, lambda row: row["samples"] >= 8)
        assert (found["samples"], found["status"], found["error_rate"]) == (8, "healthy", 0.0)
        assert 0 < found["p50_ms"] <= found["p95_ms"] <= found["p99_ms"]
    assert len(working.received) == 8
