"""Requests of the Messages API to Claude: the client's bytes go up, the vendor's bytes come back, and one record is
written of them."""

from __future__ import annotations

import json

import pytest

from tests.factories.analytics import ingested
from tests.fakes.scripted import ScriptedServer, raw, status
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway, GatewayService

PATH = "/api/gateway/v1/messages"
# The blanks and the number show whether a request was written anew.
REQUEST = (
    b'{ "model": "claude-sonnet-5",\n "max_tokens": 64, "temperature": 0.50, "metadata": {"user_id": "u"},'
    b'"system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],'
    b'"tools": [{"type": "web_search_20250305", "name": "web_search"}],'
    b'"messages": [{"role": "user", "content": "Hi"}] }'
)
USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 20,
    "output_tokens": 5,
    "vendor_extra": {"x": 1},
}
ANSWER = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
            {"type": "text", "text": "Hello", "citations": None},
        ],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
        "vendor_extra": True,
    },
    indent=1,
).encode()


def event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


START = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5",
    "content": [],
    "usage": {**USAGE, "output_tokens": 1},
}
STREAM = b"".join(
    [
        event("message_start", message=START),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("ping"),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "lo"}),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5}),
        event("message_stop"),
    ]
)


def ask(gateway: Gateway, body: bytes, **headers: str) -> tuple[int, str, bytes]:
    """Returns status, request id and body of the answer, as a client of Anthropic's asks."""
    own = {"x-api-key": gateway.key, "content-type": "application/json", **headers}
    answer = gateway.client.post(PATH, content=body, headers=own)
    return answer.status_code, answer.headers["x-request-id"], answer.content


def test_request__of_the_vendors_protocol__passes_byte_by_byte(routed: Routed) -> None:
    gateway, scripts = routed(anthropic=[raw(200, ANSWER)])

    headers = {"anthropic-version": "2026-10-21", "anthropic-beta": "context-1m-2025-08-07"}
    code, request_id, body = ask(gateway, REQUEST, **headers)

    (sent,) = scripts["anthropic"].received
    assert (code, body) == (200, ANSWER)
    assert sent.body == REQUEST
    assert sent.path.endswith("/v1/messages")
    assert (sent.headers["anthropic-version"], sent.headers["anthropic-beta"]) == (
        "2026-10-21",
        "context-1m-2025-08-07",
    )
    record = gateway.record(request_id)
    assert (record.operation, record.is_native, record.finish_reason, record.user_id) == ("messages", True, "stop", "u")
    assert (record.prompt_tokens, record.cache_read_tokens, record.cache_write_tokens) == (130, 100, 20)
    assert record.completion_tokens == 5


def test_stream__of_the_vendors_protocol__passes_byte_by_byte(routed: Routed) -> None:
    gateway, _ = routed(anthropic=[raw(200, STREAM, {"content-type": "text/event-stream"})])

    code, request_id, body = ask(gateway, REQUEST.replace(b"{ ", b'{ "stream": true, ', 1))

    assert (code, body) == (200, STREAM)
    record = gateway.record(request_id)
    assert (record.is_stream, record.is_native, record.finish_reason) == (True, True, "stop")
    assert (record.prompt_tokens, record.completion_tokens) == (130, 5)


@pytest.mark.parametrize(("stream", "answer"), [(False, ANSWER), (True, STREAM)])
def test_answer_in_the_vendors_protocol__is_stored_as_a_chat_completion(
    routed: Routed, stream: bool, answer: bytes
) -> None:
    headers = {"content-type": "text/event-stream"} if stream else None
    gateway, _ = routed(anthropic=[raw(200, answer, headers)])
    body = REQUEST.replace(b"{ ", b'{ "stream": true, ', 1) if stream else REQUEST

    _, request_id, _ = ask(gateway, body)

    (entry,) = gateway.service.spooled.of_request(request_id)
    stored = ingested(entry)
    assert stored["completion"] == b"Hello"
    assert json.loads(stored["response"])["choices"][0]["message"]["content"] == "Hello"
    assert json.loads(stored["request"])["messages"][-1]["content"] == "Hi"


def test_provider_that_fails__is_followed_by_one_of_another_dialect(routed: Routed) -> None:
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5"}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    completion = json.dumps({**head, "choices": [choice], "usage": usage}).encode()
    gateway, scripts = routed(
        {"fallback_enabled": True, "fallback_order": ["openai"], "retry_enabled": False},
        anthropic=[status(529, "overloaded")],
        openai=[raw(200, completion, {"content-type": "application/json"})],
    )
    plain = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}

    code, request_id, body = ask(gateway, json.dumps(plain).encode())

    answer = json.loads(body)
    assert (code, answer["type"], answer["stop_reason"]) == (200, "message", "end_turn")
    assert answer["content"] == [{"type": "text", "text": "Hello"}]
    assert json.loads(scripts["openai"].received[0].body)["messages"] == [{"role": "user", "content": "Hi"}]
    record = gateway.record(request_id)
    assert (record.provider, record.is_native, record.fallback_used) == ("openai", False, True)


def test_tool_that_the_vendor_runs__is_not_sent_to_another_vendor(routed: Routed) -> None:
    gateway, scripts = routed(openai=[raw(200, b"{}")])

    by_code = REQUEST.replace(b"web_search_20250305", b"code_execution_20250825")
    code, _, body = ask(gateway, by_code.replace(b"claude-sonnet-5", b"gpt-5"))

    assert code == 400
    assert json.loads(body)["error"]["type"] == "invalid_request_error"
    assert "tools[0]" in json.loads(body)["error"]["message"]
    assert not scripts["openai"].received


@pytest.mark.parametrize(
    ("parameters", "is_native"),
    [({"temperature": 0.9}, True), ({"stop": ["END"]}, False)],
)
def test_parameter_of_an_integration__that_the_protocol_has__is_set_in_the_clients_own_request(
    service: GatewayService, upstream: ScriptedServer, parameters: dict[str, object], is_native: bool
) -> None:
    script = upstream.play(f"native-{is_native}", raw(200, ANSWER))
    row = {"provider": "anthropic", "base_url": upstream.base_url(f"native-{is_native}"), "api_key": "k"}
    gateway = service.new_project(integrations=[{**row, "default_parameters": parameters}])

    _, request_id, _ = ask(gateway, REQUEST.replace(b'"temperature": 0.50, ', b""))

    assert gateway.record(request_id).is_native is is_native
    sent = json.loads(script.received[0].body)
    assert sent.get("temperature") == parameters.get("temperature")
    assert sent.get("stop_sequences") == parameters.get("stop")
    assert sent["system"] == json.loads(REQUEST)["system"]
