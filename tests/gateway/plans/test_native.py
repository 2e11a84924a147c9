"""Requests of the Messages and the Responses API to providers that speak them, with plans and without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer, Step, completion, raw
from tests.gateway.plans.both import PlansService, same
from tests.gateway.service import Gateway
from tests.tables.cases import stored

SCRIPT = "native"
PROVIDERS = ("openai", "anthropic", "groq")
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Hello ü"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 11, "output_tokens": 7},
}
RESPONSE: dict[str, Any] = stored(__file__, "RESPONSE")


@dataclass(frozen=True)
class Protocol:
    path: str
    body: dict[str, Any]
    answer: dict[str, Any]
    usage: dict[str, Any]

    def encoded(self, **fields: Any) -> bytes:
        return json.dumps({**self.body, **fields}).encode()


MESSAGES = Protocol(
    "/api/gateway/v1/messages",
    {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi ü"}]},
    MESSAGE,
    {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 20},
)
RESPONSES = Protocol(
    "/api/gateway/v1/responses",
    {"model": "gpt-5-codex", "input": "Hi ü"},
    RESPONSE,
    {"input_tokens": 500, "output_tokens": 70, "total_tokens": 570, "input_tokens_details": {"cached_tokens": 300}},
)
PROTOCOLS = pytest.mark.parametrize("protocol", [MESSAGES, RESPONSES], ids=["messages", "responses"])


@pytest.fixture(scope="module")
def gateway(plans: PlansService) -> Iterator[Gateway]:
    with ScriptedServer() as server:
        server.play(SCRIPT, raw(200, json.dumps(MESSAGE).encode()))
        places = dict.fromkeys(PROVIDERS, server.base_url(SCRIPT))
        made = plans.new_project(base_urls=places, routing={"retry_enabled": False})
        made.upstream = server
        yield made


@pytest.fixture(autouse=True)
def _connected(gateway: Gateway) -> None:
    """Gives both workers a connection that a plan can use."""
    gateway.upstream.play(SCRIPT, raw(200, json.dumps(MESSAGE).encode()))
    same(gateway, gateway.upstream, MESSAGES.encoded(), path=MESSAGES.path)


def answered(gateway: Gateway, protocol: Protocol, **fields: Any) -> None:
    gateway.upstream.play(SCRIPT, raw(200, json.dumps({**protocol.answer, **fields}).encode()))


PLAIN: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "as_it_is": ({}, {}),
    "with_its_provider": ({"model": "..."}, {}),
    "temperature": ({"temperature": 0.5}, {}),
    "version": ({}, {"anthropic-version": "2023-06-01"}),
    "other_version": ({}, {"anthropic-version": "2024-01-01"}),
    "version_that_no_header_carries": ({}, {"anthropic-version": "\u00fc"}),
    "trace": ({}, {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
    "session_and_user": ({}, {"x-svc-session-id": "s", "x-svc-user-id": "u"}),
    "own_request_id": ({}, {"x-request-id": "mine-1"}),
    "agent": ({}, {"x-claude-code-session-id": "8b1f6d1e-1111-4222-8333-444455556666"}),
}


@PROTOCOLS
@pytest.mark.parametrize(("fields", "headers"), PLAIN.values(), ids=PLAIN)
def test_plain_request__with_and_without_plans__is_the_same(
    gateway: Gateway, protocol: Protocol, fields: dict[str, Any], headers: dict[str, str]
) -> None:
    answered(gateway, protocol)
    if "model" in fields:
        provider = "anthropic" if protocol is MESSAGES else "openai"
        fields = {"model": f"{provider}/{protocol.body['model']}"}

    seen, planned = same(gateway, gateway.upstream, protocol.encoded(**fields), headers=headers, path=protocol.path)

    assert (seen.status, len(seen.received), seen.record["is_native"]) == (200, 1, True)
    assert planned


OTHERS: dict[str, dict[str, Any]] = stored(__file__, "OTHERS")


@PROTOCOLS
@pytest.mark.parametrize("fields", OTHERS.values(), ids=OTHERS)
def test_other_request__with_and_without_plans__is_the_same(
    gateway: Gateway, protocol: Protocol, fields: dict[str, Any]
) -> None:
    answered(gateway, protocol)
    if "groq" in fields.get("model", ""):
        gateway.upstream.play(SCRIPT, raw(200, json.dumps(completion()).encode()))

    assert not same(gateway, gateway.upstream, protocol.encoded(**fields), path=protocol.path)[1]


@PROTOCOLS
def test_usage__with_more_than_two_counts__is_the_same(gateway: Gateway, protocol: Protocol) -> None:
    answered(gateway, protocol, usage=protocol.usage)

    assert same(gateway, gateway.upstream, protocol.encoded(), path=protocol.path)[1]


ODD: dict[str, dict[str, Any]] = {
    "error": {"error": {"type": "overloaded_error", "message": "no"}},
    "no_content": {"content": None, "output": None},
    "no_usage": {"usage": None},
    "zero_usage": {"usage": {"input_tokens": 0, "output_tokens": 0}},
    "refused": {"stop_reason": "refusal", "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
    "failed": {"type": "error", "status": "failed"},
}


@PROTOCOLS
@pytest.mark.parametrize("fields", ODD.values(), ids=ODD)
def test_odd_answer__with_and_without_plans__is_the_same(
    gateway: Gateway, protocol: Protocol, fields: dict[str, Any]
) -> None:
    answered(gateway, protocol, **fields)

    same(gateway, gateway.upstream, protocol.encoded(), path=protocol.path)


@PROTOCOLS
@pytest.mark.parametrize("status", [201, 400, 401, 429, 500, 529])
def test_status__other_than_200__is_the_same(gateway: Gateway, protocol: Protocol, status: int) -> None:
    gateway.upstream.play(SCRIPT, raw(status, json.dumps(protocol.answer).encode()))

    assert not same(gateway, gateway.upstream, protocol.encoded(), path=protocol.path)[1]


@PROTOCOLS
@pytest.mark.parametrize("failure", [play.status(500), play.status(429, headers={"retry-after": "0"}), play.reset])
def test_failure__is_retried(gateway: Gateway, protocol: Protocol, failure: Step) -> None:
    retrying = gateway.service.new_project(base_urls=dict.fromkeys(PROVIDERS, gateway.upstream.base_url(SCRIPT)))
    answered(gateway, protocol)
    same(retrying, gateway.upstream, protocol.encoded(), path=protocol.path)
    step = raw(200, json.dumps(protocol.answer).encode())
    gateway.upstream.play(SCRIPT, failure, step, failure, step)

    seen, planned = same(retrying, gateway.upstream, protocol.encoded(), path=protocol.path)

    assert (seen.status, len(seen.received)) == (200, 2)
    assert not planned


PROJECTS: dict[str, tuple[dict[str, Any], bool]] = {
    "cache_markers": ({"routing": {"prompt_cache_markers": True}}, True),
    "without_content": ({"routing": {"log_content": False}}, True),
    "own_headers": ({"extra_headers": {"x-team": "a"}}, True),
    "passed_headers": ({"forward_headers": ["anthropic-beta"]}, True),
    "parameters": ({"default_parameters": {"temperature": 0.3}}, False),
}


@PROTOCOLS
@pytest.mark.parametrize(("options", "expected"), PROJECTS.values(), ids=PROJECTS)
def test_project__with_settings__is_the_same(
    gateway: Gateway, protocol: Protocol, options: dict[str, Any], *, expected: bool
) -> None:
    base_url = gateway.upstream.base_url(SCRIPT)
    integrations = [
        {"provider": provider, "base_url": base_url, "api_key": "sk"}
        | {name: value for name, value in options.items() if name != "routing"}
        for provider in PROVIDERS
    ]
    made = gateway.service.new_project(integrations=integrations, routing=options.get("routing", {}))
    long = protocol.encoded(**{"messages" if protocol is MESSAGES else "input": LONG[protocol.path]})
    answered(gateway, protocol)
    same(made, gateway.upstream, long, path=protocol.path)

    planned = [same(made, gateway.upstream, content, path=protocol.path)[1] for content in (long, protocol.encoded())]

    assert planned == [expected, expected]


LONG: dict[str, Any] = {
    MESSAGES.path: [{"role": role, "content": "words " * 4000} for role in ("user", "assistant", "user")],
    RESPONSES.path: "words " * 4000,
}
TEXT = st.text(max_size=30) | st.sampled_from(["type", "untrusted", "null", '"type"', "\u2028"])
SHARE = st.floats(0, 1) | st.integers(0, 1)
OF_MESSAGES = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"]),
        "max_tokens": st.integers(1, 5000),
        "messages": st.lists(
            st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXT}), min_size=1
        ),
    },
    optional={
        "system": TEXT,
        "temperature": SHARE,
        "top_p": SHARE,
        "top_k": st.integers(-1, 50),
        "stream": st.just(False),
        "stop_sequences": st.lists(TEXT, max_size=2),
        "user": TEXT,
    },
)
OF_RESPONSES = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["gpt-5-codex", "openai/gpt-5-codex"]),
        "input": TEXT | st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": TEXT}), max_size=3),
    },
    optional={
        "instructions": TEXT,
        "max_output_tokens": st.integers(0, 5000),
        "temperature": st.floats(0, 3),
        "top_p": SHARE,
        "store": st.booleans(),
        "stream": st.just(False),
        "user": TEXT,
        "truncation": st.just("auto"),
    },
)
COUNT = st.integers(0, 3000) | st.sampled_from(["12", -1, None])
CONTENT = st.sampled_from(
    [
        [],
        [{"type": "text", "text": ""}],
        [{"type": "thinking", "thinking": "a", "signature": "b"}, {"type": "text", "text": "c"}],
        [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
        [{"type": "text"}],
        [{}],
    ]
)
OUTPUT = st.sampled_from(
    [
        [],
        [{"type": "reasoning", "id": "r", "summary": []}, *RESPONSE["output"]],
        [{"type": "function_call", "id": "f", "call_id": "c", "name": "f", "arguments": "{}"}],
        [{"type": "web_search_call", "action": {"type": "search"}}, *RESPONSE["output"]],
        [{}],
    ]
)
ANSWER_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "model": TEXT,
        "content": CONTENT,
        "output": OUTPUT,
        "error": st.sampled_from([None, {}, {"type": "overloaded_error"}]),
        "incomplete_details": st.sampled_from([None, {"reason": "max_output_tokens"}]),
        "tool_usage": st.sampled_from([None, {"web_search": {"num_requests": 2}}]),
        "type": st.sampled_from(["message", "error", ""]),
        "status": st.sampled_from(["completed", "incomplete", "failed", "cancelled", None]),
        "stop_reason": st.sampled_from(["end_turn", "max_tokens", "tool_use", "refusal", "pause_turn", None]),
        "service_tier": st.sampled_from(["default", "flex", "standard", "priority", None]),
        "usage": st.fixed_dictionaries(
            {"input_tokens": COUNT, "output_tokens": COUNT},
            optional={
                "total_tokens": COUNT,
                "cache_read_input_tokens": COUNT,
                "cache_creation_input_tokens": COUNT,
                "input_tokens_details": st.fixed_dictionaries({"cached_tokens": COUNT}),
                "output_tokens_details": st.fixed_dictionaries({"reasoning_tokens": COUNT}),
            },
        ),
    },
)


@pytest.mark.parametrize(("protocol", "bodies"), [(MESSAGES, OF_MESSAGES), (RESPONSES, OF_RESPONSES)])
def test_random_exchange__with_and_without_plans__is_the_same(
    gateway: Gateway, protocol: Protocol, bodies: st.SearchStrategy[dict[str, Any]]
) -> None:
    planned = []

    @given(request=bodies, answer=st.just({}) | ANSWER_FIELDS)
    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def ask(request: dict[str, Any], answer: dict[str, Any]) -> None:
        answered(gateway, protocol, **answer)
        planned.append(same(gateway, gateway.upstream, json.dumps(request).encode(), path=protocol.path)[1])

    ask()

    assert any(planned)


@pytest.mark.parametrize(("is_stored", "status"), [(True, 200), (False, 404)])
def test_response__that_a_plan_answers__is_named_later_if_its_provider_keeps_it(
    gateway: Gateway, plans: PlansService, *, is_stored: bool, status: int
) -> None:
    answered(gateway, RESPONSES, id=f"resp_{is_stored}", store=is_stored)
    before = plans.planned[0]

    def asked(**fields: Any) -> int:
        body = RESPONSES.encoded(model="openai/gpt-5-codex", **fields)
        url = f"{plans.base_url(plans.ports[0])}{RESPONSES.path}"
        return plans.client.post(url, content=body, headers=gateway.headers).status_code

    assert asked() == 200
    assert plans.planned[0] == before + 1
    assert asked(previous_response_id=f"resp_{is_stored}") == status
