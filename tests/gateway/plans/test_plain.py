"""Requests to a worker with plans and to one without: client, provider and request log see the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.scripted import ScriptedServer, answer, completion, raw
from tests.gateway import service
from tests.gateway.plans.both import PlansService, same
from tests.gateway.service import Gateway
from tests.gateway.wire import encoded

SCRIPT = "plans"
PRICED_MODEL = f"openai/{service.PRICED_MODEL}"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def gateway(plans: PlansService) -> Iterator[Gateway]:
    with ScriptedServer() as server:
        server.play(SCRIPT, answer())
        places = dict.fromkeys(("openai", "groq"), server.base_url(SCRIPT))
        made = plans.new_project(base_urls=places, routing={"retry_enabled": False})
        made.upstream = server
        # The first request of a worker to a provider has no connection that a plan could use.
        same(made, server, encoded())
        yield made


@pytest.fixture(autouse=True)
def _plain_answers(gateway: Gateway) -> Iterator[None]:
    gateway.upstream.play(SCRIPT, answer())
    yield
    # A test may have ended the connection.
    gateway.upstream.play(SCRIPT, answer())
    same(gateway, gateway.upstream, encoded())


MARKS = 'null "cache_control" cache_control function "assistant" "untrusted" "n" "stream": true'
PLAIN: dict[str, dict[str, Any]] = {
    "named_with_its_provider": {"content": encoded()},
    "its_own_name": {"content": encoded(model="gpt-4o")},
    "priced": {"content": encoded(model=PRICED_MODEL)},
    "another_dialect": {"content": encoded(model="groq/llama-3.3-70b-versatile", temperature=0.5)},
    "session_and_user": {"content": encoded(), "headers": {"x-svc-session-id": "s", "x-svc-user-id": "ü"}},
    "user_of_the_body": {"content": encoded(user="somebody")},
    "own_request_id": {"content": encoded(), "headers": {"x-request-id": "mine-1"}},
    "unusable_request_id": {"content": encoded(), "headers": {"x-request-id": "not usable\u00e9"}},
    "trace": {"content": encoded(), "headers": {"traceparent": TRACE}},
    "session_of_an_agent": {"content": encoded(), "headers": {"session-id": "agent-1"}},
    "stream_false": {"content": encoded(stream=False)},
    "null_field": {"content": encoded(temperature=None, seed=None)},
    "spaces": {"content": b' { "model" : "openai/gpt-4o" , "messages":[{"role":"user","content":"a"}] } '},
    "name_with_escapes": {"content": b'{"mod\\u0065l":"gpt-4o","messages":[{"role":"user","content":"a"}]}'},
    "name_twice": {"content": b'{"model":"a","model":"gpt-4o","messages":[{"role":"user","content":"a"}]}'},
    "text_twice": {"content": b'{"model":"gpt-4o","messages":[],"messages":[{"role":"user","content":"a"}]}'},
    "beyond_ascii": {"content": '{"model":"gpt-4o","messages":[{"role":"user","content":"日本語 ü"}]}'.encode()},
    "tools": {"content": encoded(tools=[{"type": "function", "function": {"name": "f"}}])},
    "system_message": {
        "content": encoded(messages=[{"role": "system", "content": "a"}, {"role": "user", "content": "b"}])
    },
    "history": {
        "content": encoded(
            messages=[
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b", "reasoning_content": "c"},
                {"role": "user", "content": "d"},
            ]
        )
    },
    "text_with_marks": {"content": encoded(messages=[{"role": "user", "content": MARKS}])},
    "text_with_an_escape": {"content": encoded(messages=[{"role": "user", "content": MARKS + "\\u0041 ü"}])},
    "answered_before": {
        "content": encoded(messages=[{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}])
    },
    "type_behind_the_messages": {"content": encoded()[:-1] + b',"type":"a"}'},
    "number_out_of_range": {"content": encoded()[:-1] + b',"a":1e400}'},
    "unknown_field": {"content": encoded(anything={"a": [1, 2]})},
}
OTHERS: dict[str, dict[str, Any]] = {
    "stream": {"content": encoded(stream=True)},
    "stream_between_long_texts": {
        "content": encoded(messages=[], user="a" * 3000, stream=True)[:-1]
        + b',"messages":[{"role":"user","content":"%b"}]}' % (b"b" * 3000)
    },
    "null_in_a_message": {"content": encoded(messages=[{"role": "user", "content": None}])},
    "too_many_messages": {"content": encoded(messages=[{"role": "user", "content": "a"}] * 1001)},
    "control_character": {"content": b'{"model":"gpt-4o","messages":[{"role":"user","content":"a\nb"}]}'},
    "lone_surrogate": {"content": b'{"model":"gpt-4o","messages":[{"role":"user","content":"\\ud800"}]}'},
    "wrong_escape": {"content": b'{"model":"gpt-4o","messages":[{"role":"user","content":"\\x"}]}'},
    "more_behind_the_object": {"content": encoded() + b"{}"},
    "not_json": {"content": b"{"},
    "no_json_object": {"content": b"[]"},
    "empty": {"content": b""},
    "not_utf8": {"content": b'{"model":"gpt-4o","messages":[{"role":"user","content":"\xff"}]}'},
    "not_utf8_in_an_unknown_field": {"content": encoded()[:-1] + b',"a":"\xff"}'},
    "nested_deeply": {"content": encoded()[:-1] + b',"a":' + b"[" * 5000 + b"]" * 5000 + b"}"},
    "no_messages": {"content": encoded(messages=[])},
    "unknown_model": {"content": encoded(model="anthropic/claude-sonnet-4-5")},
    "models": {"content": encoded(models=["openai/gpt-4o-mini"])},
    "provider": {"content": encoded(provider={"only": ["openai"]})},
    "prompt_config": {"content": encoded(prompt_config="none")},
    "prompt_variables": {"content": encoded(prompt_variables={"a": 1})},
    "response_format": {"content": encoded(response_format={"type": "json_object"})},
    "schema": {
        "content": encoded(
            response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
        )
    },
    "mark_of_a_document": {
        "content": encoded(
            messages=[{"role": "user", "content": [{"type": "text", "text": "a", "trust": "untrusted"}]}]
        )
    },
    "functions": {"content": encoded(model="groq/llama-3.3-70b-versatile", functions=[{"name": "f"}])},
    "dropped_with_a_warning": {"content": encoded(model="groq/llama-3.3-70b-versatile", logit_bias={"1": 1})},
    "refused_parameter": {"content": encoded(model="groq/llama-3.3-70b-versatile", n=2)},
    "prompt_header": {"content": encoded(), "headers": {"x-svc-prompt-config": "none"}},
    "forced_variant": {"content": encoded(), "headers": {"x-svc-force-variant": "neither"}},
    "variable": {"content": encoded(), "headers": {"x-svc-var-a": "b" * 300}},
    "cache_control": {"content": encoded(), "headers": {"cache-control": "no-store"}},
    "identity": {"content": encoded(), "headers": {"content-encoding": "identity"}},
    "compressed": {"content": encoded(), "headers": {"content-encoding": "gzip"}},
    "forwarded_header": {"content": encoded(), "headers": {"openai-beta": "assistants=v2"}},
    "connection_close": {"content": encoded(), "headers": {"connection": "close"}},
}


@pytest.mark.parametrize("request_", PLAIN.values(), ids=PLAIN)
def test_plain_request__with_and_without_plans__is_the_same(gateway: Gateway, request_: dict[str, Any]) -> None:
    seen, planned = same(gateway, gateway.upstream, **request_)

    assert seen.status == 200, seen.answer
    assert len(seen.received) == 1
    assert planned


@pytest.mark.parametrize("request_", OTHERS.values(), ids=OTHERS)
def test_other_request__with_and_without_plans__is_the_same(gateway: Gateway, request_: dict[str, Any]) -> None:
    assert not same(gateway, gateway.upstream, **request_)[1]


@pytest.mark.parametrize("size", [60_000, 200_000, 900_000])
def test_large_request__with_and_without_plans__is_the_same(gateway: Gateway, size: int) -> None:
    content = encoded(messages=[{"role": "user", "content": "x" * size}])

    assert same(gateway, gateway.upstream, content)[0].status == 200


USAGE = {"prompt_tokens": 1000, "completion_tokens": 333, "total_tokens": 1333}
CONFORMING: dict[str, bytes] = {
    "cached": json.dumps(completion(usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 700}})).encode(),
    "reasoning": json.dumps(completion(usage={**USAGE, "completion_tokens_details": {"reasoning_tokens": 7}})).encode(),
    "tier": json.dumps(completion(service_tier="flex")).encode(),
    "length": json.dumps(completion()).replace('"stop"', '"length"').encode(),
    "stated_cost": json.dumps(completion(usage={**USAGE, "cost": 0.0123456789012})).encode(),
    "beyond_ascii": json.dumps(completion("日本語 ü"), ensure_ascii=False).encode(),
    "large": json.dumps(completion("word " * 10_000)).encode(),
}
ODD: dict[str, bytes] = {
    "empty": b"",
    "no_json": b"<html>",
    "not_utf8": json.dumps(completion()).encode().replace(b"Hello", b"\xff"),
    "no_usage": json.dumps({**completion(), "usage": None}).encode(),
    "zero_usage": json.dumps(completion(usage={"prompt_tokens": 0, "completion_tokens": 0})).encode(),
    "no_choice": json.dumps({**completion(), "choices": []}).encode(),
    "error": json.dumps({"error": {"message": "no", "type": "server_error"}}).encode(),
    "filtered": json.dumps(completion()).replace('"stop"', '"content_filter"').encode(),
    "unknown_reason": json.dumps(completion()).replace('"stop"', '"because"').encode(),
    "broken_off": json.dumps(completion()).replace('"stop"', '"error"').encode(),
    "nested_deeply": json.dumps(completion())[:-1].encode() + b',"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
}


@pytest.mark.parametrize("model", [PRICED_MODEL, "gpt-4o"])
@pytest.mark.parametrize("content", CONFORMING.values(), ids=CONFORMING)
def test_answer__that_conforms__is_the_same(gateway: Gateway, content: bytes, model: str) -> None:
    gateway.upstream.play(SCRIPT, raw(200, content))

    seen, _ = same(gateway, gateway.upstream, encoded(model=model))

    assert seen.answer == content


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_answer__that_does_not_conform__is_the_same(gateway: Gateway, content: bytes) -> None:
    gateway.upstream.play(SCRIPT, raw(200, content))

    same(gateway, gateway.upstream, encoded(model=PRICED_MODEL))


@pytest.mark.parametrize("status", [201, 204, 301, 400, 401, 403, 404, 408, 422, 429, 500, 503])
def test_status__other_than_200__is_the_same(gateway: Gateway, status: int) -> None:
    gateway.upstream.play(SCRIPT, raw(status, json.dumps(completion()).encode()))

    seen, planned = same(gateway, gateway.upstream, encoded(model=PRICED_MODEL))

    assert seen.received
    assert not planned
