"""The setting `introspection_enabled` requests a model's reasoning where the client's request leaves it open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.pipeline import reasoning
from gateway.pipeline.reasoning import INTROSPECTION
from gateway.project_settings.settings import ProjectSettings
from tests.fakes import scripted as play
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.wire import body
from tests.tables.cases import tabled

LOOKING = {"introspection_enabled": True, "thinking_budget_tokens": 2048}
MESSAGES = [{"role": "user", "content": "Zwölf Äpfel"}]


def exchange(
    routed: Routed, provider: str, settings: dict[str, Any], content: bytes | dict[str, Any]
) -> tuple[Any, ...]:
    """Returns what the provider received, the response and its gateway."""
    gateway, scripts = routed(settings, **{provider: [play.answer()]})
    response = gateway.post(content)
    return scripts[provider].received[-1].body, response, gateway


def introspection_of(gateway: Gateway, response: Any) -> str | None:
    return gateway.record(response).attributes.get(INTROSPECTION)


@pytest.mark.parametrize(("budget", "effort"), [(2048, "low"), (8192, "medium"), (30_000, "high"), (0, "medium")])
def test_reasoning_model__request_leaves_it_open__reasoning_is_requested(
    routed: Routed, budget: int, effort: str
) -> None:
    settings = {**LOOKING, "thinking_budget_tokens": budget}
    sent, response, gateway = exchange(routed, "openai", settings, body(model="gpt-5", messages=MESSAGES))

    assert json.loads(sent)["reasoning_effort"] == effort
    assert json.loads(sent)["messages"] == MESSAGES
    assert response.status_code == 200
    assert introspection_of(gateway, response) == "requested"


def test_stream__of_a_reasoning_model__reasoning_is_requested(routed: Routed) -> None:
    sent, _, _ = exchange(routed, "openai", LOOKING, body(model="o3", stream=True))
    assert json.loads(sent)["reasoning_effort"] == "low"


@tabled
def test_request__that_speaks_of_reasoning__has_its_way(routed: Routed, fields: dict[str, Any]) -> None:
    with_introspection, *_ = exchange(routed, "openai", LOOKING, body(model="gpt-5", **fields))
    without_introspection, *_ = exchange(routed, "openai", {}, body(model="gpt-5", **fields))
    assert with_introspection == without_introspection


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-nobody-knows"])
def test_model__that_does_not_reason_or_nobody_knows__gets_the_bytes_as_sent(routed: Routed, model: str) -> None:
    content = b' {"model": "%s" , "messages":[{"role":"user","content":"\\u00fc"}]}\n' % model.encode()
    sent, response, gateway = exchange(routed, "openai", LOOKING, content)
    assert sent == content
    assert introspection_of(gateway, response) is None


def test_project__that_does_not_look__changes_nothing(routed: Routed) -> None:
    content = b'{"model":"gpt-5","messages":[{"role":"user","content":"x"}]}'
    sent, *_ = exchange(routed, "openai", {"thinking_budget_tokens": 2048}, content)
    assert sent == content


def test_fallback__to_a_model_that_does_not_reason__is_called_without(routed: Routed) -> None:
    gateway, scripts = routed(LOOKING, openai=[play.status(500)], groq=[play.answer()])

    response = gateway.post(body(model="openai/gpt-5", models=["groq/llama-3.3-70b-versatile"]))

    assert "reasoning_effort" in json.loads(scripts["openai"].received[-1].body)
    assert not {"thinking", "reasoning_effort"} & set(json.loads(scripts["groq"].received[-1].body))
    assert response.headers["x-svc-provider"] == "groq"
    assert introspection_of(gateway, response) is None


@pytest.mark.parametrize("stream", [False, True])
def test_provider__that_refuses_the_request_for_reasoning__gets_it_without(routed: Routed, stream: bool) -> None:
    gateway, scripts = routed(LOOKING, openai=[play.status(400), play.answer()])
    content = json.dumps(body(model="gpt-5", messages=MESSAGES, temperature=0.3, stream=stream)).encode()

    response = gateway.post(content)

    first, second = (json.loads(request.body) for request in scripts["openai"].received)
    assert ("reasoning_effort" in first, "reasoning_effort" in second) == (True, False)
    assert second["messages"] == MESSAGES
    assert (response.status_code, response.headers["x-svc-retry-count"]) == (200, "0")
    assert introspection_of(gateway, response) == "refused"
    attempts = gateway.record(response).attempts
    assert [(attempt.status, attempt.error) for attempt in attempts] == [(400, "rejected"), (200, "")]


def test_request__that_is_at_fault_itself__fails_as_it_would_without(routed: Routed) -> None:
    gateway, scripts = routed(LOOKING, openai=[play.status(400)])
    response = gateway.post(body(model="gpt-5"))
    assert response.status_code == 400
    assert len(scripts["openai"].received) == 2


@tabled
def test_request__that_leaves_no_room_for_reasoning__is_left_as_it_is(routed: Routed, fields: dict[str, Any]) -> None:
    gateway, scripts = routed(LOOKING, openai=[play.answer()])
    response = gateway.post(body(model="gpt-5", **fields))
    assert "reasoning_effort" not in json.loads(scripts["openai"].received[-1].body)
    assert introspection_of(gateway, response) is None


def test_budget__leaves_room_for_the_answer() -> None:
    assert b'"budget_tokens":2000}' in reasoning._thinking(ProjectSettings(thinking_budget_tokens=8000), 4000)
    assert b'"budget_tokens":2000}' in reasoning._thinking(ProjectSettings(), 4000)
    assert reasoning._thinking(ProjectSettings(), 50_000) == reasoning._thinking(ProjectSettings(), None)
    assert b'"budget_tokens":8000}' in reasoning._thinking(ProjectSettings(thinking_budget_tokens=8000), None)
