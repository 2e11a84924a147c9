"""`POST /api/llm/playground`: one model's answer, through the pipeline that clients use."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.fakes.scripted import answer, hang, raw, status
from tests.gateway.conftest import Routed, Scripted
from tests.gateway.playground.calls import MESSAGES, ask
from tests.gateway.service import PRICED_MODEL
from tests.gateway.wire import UUID
from tests.waiting import TIMEOUT_SECONDS

PRICED = f"openai/{PRICED_MODEL}"
COST = 0.000078  # The cost is of 11 prompt and 7 completion tokens at 2 and 8 dollars a million.


def test_playground__answered__says_what_it_took(scripted: Scripted) -> None:
    gateway, script = scripted(answer("Paris"))
    response = ask(gateway, model=PRICED, temperature=0.3, max_tokens=50, project_id=gateway.project_id)
    assert response.status_code == 200, response.text
    result = response.json()
    assert UUID.match(result["request_id"])
    assert result["latency_ms"] > 0
    assert {**result, "request_id": "", "latency_ms": 0} == {
        "model": PRICED,
        "request_id": "",
        "provider": "openai",
        "model_used": PRICED_MODEL,
        "fallback_used": False,
        "response": {"role": "assistant", "content": "Paris"},
        "finish_reason": "stop",
        "usage": {
            "prompt_tokens": 11,
            "completion_tokens": 7,
            "total_tokens": 18,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "reasoning_tokens": 0,
            "estimated": False,
        },
        "latency_ms": 0,
        "ttft_ms": None,
        "cost_usd": COST,
        "prompt_version": None,
        "variant": None,
        "warning": None,
        "scores": None,
        "evaluation": None,
        "error": None,
    }
    sent = json.loads(script.received[0].body)
    assert sent == {"model": PRICED_MODEL, "messages": MESSAGES, "temperature": 0.3, "max_tokens": 50}


def test_playground__answered__is_recorded_with_its_source(scripted: Scripted) -> None:
    gateway, _ = scripted(answer("Paris"))
    result = ask(gateway, session_id="trial é", user="ann").json()
    record = gateway.record(result["request_id"])
    assert (record.source, record.session_id, record.user_id) == ("playground", "trial é", "ann")
    assert record.api_key_id > 0
    assert record.attributes == {"actor": f"key:{record.api_key_id}"}
    assert not record.is_stream


def test_playground__unpriced_model__cost_is_null_with_a_warning(scripted: Scripted) -> None:
    gateway, _ = scripted(answer())
    result = ask(gateway, model="openai/nobody-knows-the-price").json()
    assert result["cost_usd"] is None
    assert "no price is known" in result["warning"]


def test_playground__provider_fails__has_the_gateways_status_and_error(scripted: Scripted) -> None:
    gateway, _ = scripted(status(503, "overloaded", {"retry-after": "7"}))
    gateway.service.set_routing(gateway.project_id, retry_enabled=False)
    response = ask(gateway)
    assert response.status_code == 503
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("service_unavailable_error", "provider_unavailable")
    assert response.headers["retry-after"] == "7"
    assert gateway.record(response.headers["x-svc-request-id"]).source == "playground"


def test_playground__no_provider_serves_the_model__is_404(scripted: Scripted) -> None:
    gateway, _ = scripted(answer())
    response = ask(gateway, model="claude-sonnet-4-5")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"


def test_playground__first_provider_down__fails_over_and_says_so(routed: Routed) -> None:
    gateway, _ = routed(
        {"fallback_order": ["groq"], "preferred_models": ["groq/llama-3.3-70b-versatile"], "retry_enabled": False},
        openai=[status(503)],
        groq=[answer("Paris")],
    )
    result = ask(gateway).json()
    assert (result["provider"], result["fallback_used"]) == ("groq", True)
    assert result["response"]["content"] == "Paris"


def test_playground__auto__takes_a_preferred_model(routed: Routed) -> None:
    gateway, _ = routed({"preferred_models": [PRICED]}, openai=[answer("Paris")])
    result = ask(gateway, model="auto").json()
    assert (result["model"], result["model_used"]) == ("auto", PRICED_MODEL)


def test_playground__prompt_config__is_rendered(scripted: Scripted) -> None:
    gateway, script = scripted(answer())
    gateway.service.seeder.call(
        "make_prompt",
        project_id=gateway.project_id,
        name="greeter",
        versions=[{"system_prompt": "You greet {{ name }}.", "variables": [{"name": "name", "type": "string"}]}],
    )
    response = gateway.service.until(
        lambda: ask(gateway, prompt_config="greeter", prompt_variables={"name": "Ann"}),
        lambda found: found.status_code == 200,
    )
    assert response.json()["prompt_version"] == 1
    assert json.loads(script.received[-1].body)["messages"][0] == {"role": "system", "content": "You greet Ann."}


def test_playground__missing_variable__is_422(scripted: Scripted) -> None:
    gateway, _ = scripted(answer())
    variable = {"name": "name", "type": "string", "required": True}
    gateway.service.seeder.call(
        "make_prompt",
        project_id=gateway.project_id,
        name="greeter",
        versions=[{"system_prompt": "You greet {{ name }}.", "variables": [variable]}],
    )
    response = gateway.service.until(
        lambda: ask(gateway, prompt_config="greeter"), lambda found: found.status_code != 404
    )
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "missing_variable"


def test_playground__limits__refuse_it_as_any_request(scripted: Scripted) -> None:
    gateway, _ = scripted(answer())
    gateway.service.set_routing(gateway.project_id, rate_limit_enabled=True, rate_limit_rpm=1)
    response = gateway.service.until(lambda: ask(gateway), lambda found: found.status_code == 429)
    assert response.json()["error"]["code"] == "requests_per_minute"
    assert response.headers["x-ratelimit-limit-requests"] == "1"
    assert int(response.headers["retry-after"]) <= 60


def test_playground__guardrails__refuse_it_as_any_request(scripted: Scripted) -> None:
    gateway, _ = scripted(answer())
    guardrails = {"trust_mode": "enforce", "blocked_input_topics": ["capital of France"]}
    gateway.service.set_routing(gateway.project_id, guardrails=guardrails)
    response = gateway.service.until(lambda: ask(gateway), lambda found: found.status_code == 400)
    assert response.json()["error"]["type"] == "guardrail_error"


def test_playground__project_caches_answers__calls_the_model_nevertheless(scripted: Scripted) -> None:
    gateway, script = scripted(answer())
    gateway.service.set_routing(gateway.project_id, cache_ttl_seconds=600)
    responses = [ask(gateway) for _ in range(3)]
    assert len(script.received) == len(responses)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": "x" * 1_048_577}]}, "messages[0].content"),
        ({"max_tokens": 2**63}, "max_tokens"),
        ({"n": 2}, "n"),
        ({"compare_models": ["a"]}, "compare_models"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_playground__bad_input__is_400_that_names_the_field(
    scripted: Scripted, fields: dict[str, Any], named: str
) -> None:
    gateway, script = scripted(answer())
    response = ask(gateway, **fields)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(f"{named}"), error
    assert any(field.startswith(named) for field in error["details"]), error
    assert script.received == []


@pytest.mark.parametrize(
    "message",
    [
        '{"role": "assistant", "content": "x", "extra": %s}' % ("[" * 900 + "]" * 900),
        '{"role": "assistant", "content": "x", "extra": NaN}',
    ],
    ids=["deep", "nan"],
)
def test_playground__answer_that_cannot_be_shown__is_the_providers_failure(scripted: Scripted, message: str) -> None:
    content = '{"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": %s}]}'
    gateway, _ = scripted(raw(200, (content % message).encode(), {"content-type": "application/json"}))
    gateway.service.set_routing(gateway.project_id, retry_enabled=False)
    response = ask(gateway)
    assert response.status_code == 500, response.text
    assert response.json()["error"]["code"] == "provider_error"
    assert "logged" not in response.text


def test_playground__client_leaves__hangs_up_upstream_and_records_it(scripted: Scripted) -> None:
    gateway, script = scripted(hang)
    content = json.dumps({"model": "openai/gpt-4o", "messages": MESSAGES}).encode()
    head = (
        f"POST /api/llm/playground HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {gateway.key}\r\n"
        f"x-project-id: {gateway.project_id}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(head.encode() + content)
        script.wait_for(1)
    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
