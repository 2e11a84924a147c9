"""Requests of the Responses API to providers that speak it: the client's bytes go up, the vendor's bytes come back."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from tests.factories.analytics import ingested
from tests.fakes.scripted import ScriptedServer, completion, raw, status, stream
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway, GatewayService
from tests.tables.cases import tabled

PATH = "/api/gateway/v1/responses"
# The blanks and the number show whether a request was written anew.
REQUEST = (
    b'{ "model": "gpt-5",\n "input": [{"role": "user", "content": "Hi"}], "top_p": 0.50, "store": false,'
    b'"include": ["reasoning.encrypted_content"], "tools": [{"type": "web_search"}] }'
)
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 130,
}
OUTPUT: list[dict[str, Any]] = [
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
    {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
    {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}],
    },
]
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_760_000_000,
    "status": "completed",
    "model": "gpt-5-2025-08-07",
    "output": OUTPUT,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": USAGE,
    "vendor_extra": {"x": 1},
}
ANSWER = json.dumps(RESPONSE, indent=1).encode()
BEGUN = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
EMPTY = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}


def event(number: int, kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **fields})}\n\n".encode()


HEAD = [
    event(0, "response.created", response=BEGUN),
    event(1, "response.output_item.added", output_index=0, item={**OUTPUT[2], "content": []}),
    event(2, "response.content_part.added", part=EMPTY, **PLACE),
    event(3, "response.output_text.delta", delta="Hel", logprobs=[], **PLACE),
]
STREAM = b"".join(
    [
        *HEAD,
        event(4, "response.output_text.delta", delta="lo", logprobs=[], **PLACE),
        event(5, "response.output_text.done", text="Hello", logprobs=[], **PLACE),
        event(6, "response.output_item.done", output_index=0, item=OUTPUT[2]),
        event(7, "response.completed", response=RESPONSE),
    ]
)
EVENTS = {"content-type": "text/event-stream"}


def ask(gateway: Gateway, body: bytes) -> httpx2.Response:
    return gateway.client.post(PATH, content=body, headers=gateway.headers)


def test_request__of_the_vendors_protocol__passes_byte_by_byte(routed: Routed) -> None:
    gateway, scripts = routed(openai=[raw(200, ANSWER)])

    answer = ask(gateway, REQUEST)

    (sent,) = scripts["openai"].received
    assert (answer.status_code, answer.content) == (200, ANSWER)
    assert sent.body == REQUEST
    assert sent.path.endswith("/responses")
    record = gateway.record(answer)
    assert (record.operation, record.is_native, record.finish_reason) == ("responses", True, "stop")
    assert (record.prompt_tokens, record.cache_read_tokens, record.cache_write_tokens) == (100, 60, 10)
    assert (record.completion_tokens, record.reasoning_tokens) == (30, 20)


def test_stream__of_the_vendors_protocol__passes_byte_by_byte(routed: Routed) -> None:
    gateway, _ = routed(openai=[raw(200, STREAM, EVENTS)])

    answer = ask(gateway, REQUEST.replace(b"{ ", b'{ "stream": true, ', 1))

    assert (answer.status_code, answer.content) == (200, STREAM)
    record = gateway.record(answer)
    assert (record.is_stream, record.is_native, record.finish_reason) == (True, True, "stop")
    assert (record.prompt_tokens, record.completion_tokens) == (100, 30)


@pytest.mark.parametrize(("streamed", "answer"), [(False, ANSWER), (True, STREAM)])
def test_answer_in_the_vendors_protocol__is_stored_as_a_chat_completion(
    routed: Routed, streamed: bool, answer: bytes
) -> None:
    gateway, _ = routed(openai=[raw(200, answer, EVENTS if streamed else None)])
    body = REQUEST.replace(b"{ ", b'{ "stream": true, ', 1) if streamed else REQUEST

    request_id = ask(gateway, body).headers["x-request-id"]

    (entry,) = gateway.service.spooled.of_request(request_id)
    stored = ingested(entry)
    assert stored["completion"] == b"Hello"
    message = json.loads(stored["response"])["choices"][0]["message"]
    assert [item["type"] for item in message["provider_specific_fields"]["output"]] == ["web_search_call"]


def test_sdk__whole_and_streamed__reads_the_same_response(routed: Routed) -> None:
    gateway, _ = routed(openai=[raw(200, ANSWER), raw(200, STREAM, EVENTS)])

    with gateway.openai() as client:
        whole = client.responses.create(model="gpt-5", input="Hi")
        with client.responses.stream(model="gpt-5", input="Hi") as events:
            streamed = events.get_final_response()

    assert whole.output_text == streamed.output_text == "Hello"
    assert whole.usage == streamed.usage


@pytest.mark.parametrize(
    ("base", "model"),
    [("", "gpt-5"), ("/openai/v1", "gpt-5"), ("/models", "gpt-5"), ("/openai/deployments/mine", "mine")],
)
def test_azure__whatever_its_layout__has_responses_at_the_resource(
    service: GatewayService, upstream: ScriptedServer, base: str, model: str
) -> None:
    name = f"azure-{len(upstream.scripts)}"
    script = upstream.play(name, raw(200, ANSWER))
    gateway = service.new_project(base_urls={"azure_openai": f"{upstream.base_url(name)}{base}"})

    answer = ask(gateway, REQUEST.replace(b"gpt-5", b"azure_openai/gpt-5"))

    assert answer.content == ANSWER
    (sent,) = script.received
    assert sent.path.endswith(f"/{name}/openai/v1/responses")
    assert json.loads(sent.body)["model"] == model


def test_state_that_a_provider_keeps__passes_where_the_model_names_the_provider(routed: Routed) -> None:
    gateway, scripts = routed(own_account=True, openai=[raw(200, ANSWER)])
    body = {"model": "openai/gpt-5", "input": "Hi", "previous_response_id": "resp_0", "store": True}

    assert ask(gateway, json.dumps(body).encode()).status_code == 200

    assert json.loads(scripts["openai"].received[0].body) == {**body, "model": "gpt-5"}


@tabled
def test_state_that_nobody_keeps__is_refused_by_name(routed: Routed, fields: dict[str, Any], named: str) -> None:
    gateway, scripts = routed(own_account=True, openai=[raw(200, ANSWER)], groq=[raw(200, b"{}")])

    with gateway.openai() as client, pytest.raises(openai.BadRequestError, match=named) as caught:
        client.responses.create(input="Hi", **fields)

    assert caught.value.code == "unsupported_parameter"
    assert not scripts["openai"].received + scripts["groq"].received


def test_state_that_a_provider_keeps__is_not_sent_to_a_fallback(routed: Routed) -> None:
    routing = {"fallback_enabled": True, "fallback_order": ["azure_openai"], "retry_enabled": False}
    gateway, scripts = routed(routing, own_account=True, openai=[status(503)], azure_openai=[raw(200, ANSWER)])

    with gateway.openai() as client, pytest.raises(openai.InternalServerError):
        client.responses.create(model="openai/gpt-5", input="Hi", previous_response_id="resp_0")

    assert not scripts["azure_openai"].received


def test_provider_that_fails__is_followed_by_one_of_another_protocol(routed: Routed) -> None:
    routing = {"fallback_enabled": True, "fallback_order": ["groq"], "retry_enabled": False}
    answer = json.dumps(completion("Hello")).encode()
    gateway, scripts = routed(routing, openai=[status(503)], groq=[raw(200, answer)])

    with gateway.openai() as client:
        made = client.responses.create(model="gpt-5", input="Hi")

    assert made.output_text == "Hello"
    assert json.loads(scripts["groq"].received[0].body)["messages"] == [{"role": "user", "content": "Hi"}]


def test_encrypted_reasoning__is_not_sent_to_another_vendor(routed: Routed) -> None:
    routing = {"fallback_enabled": True, "fallback_order": ["xai"], "retry_enabled": False}
    gateway, scripts = routed(routing, openai=[status(503)], xai=[raw(200, ANSWER)])
    user = {"role": "user", "content": "Hi"}
    body = {"model": "gpt-5", "input": [user, OUTPUT[0], user], "store": False}

    assert ask(gateway, json.dumps(body).encode()).status_code == 200

    assert json.loads(scripts["openai"].received[0].body)["input"] == [user, OUTPUT[0], user]
    assert json.loads(scripts["xai"].received[0].body)["input"] == [user, user]


def test_failure_inside_a_stream__before_output__is_followed_by_the_next_provider(routed: Routed) -> None:
    error = {"code": "server_error", "message": "The model failed"}
    failed = event(1, "response.failed", response={**BEGUN, "status": "failed", "error": error})
    routing = {"fallback_enabled": True, "fallback_order": ["xai"], "retry_enabled": False}
    gateway, _ = routed(routing, openai=[raw(200, HEAD[0] + failed, EVENTS)], xai=[raw(200, STREAM, EVENTS)])

    answer = ask(gateway, b'{"model": "gpt-5", "input": "Hi", "stream": true}')

    assert answer.content == STREAM
    assert [attempt.error for attempt in gateway.record(answer).attempts] == ["unavailable", ""]


@pytest.mark.parametrize("end", ["reset", "end"])
def test_failure_inside_a_stream__after_output__ends_it_with_the_failed_response(routed: Routed, end: str) -> None:
    done = event(4, "response.output_item.done", output_index=0, item=OUTPUT[2])
    # The vendor's numbers need not begin with 0.
    gateway, _ = routed(openai=[stream(*HEAD, done, done.replace(b": 4,", b": 9,"), end=end)])

    with gateway.openai() as client:
        *before, last = client.responses.create(model="gpt-5", input="Hi", stream=True)

    assert [one.type for one in before][3:] == ["response.output_text.delta", *["response.output_item.done"] * 2]
    assert last.type == "response.failed"
    assert last.sequence_number == 10
    assert (last.response.id, last.response.status) == ("resp_1", "failed")
    assert last.response.error is not None
    assert [item.id for item in last.response.output] == ["msg_1", "msg_1"]


def test_failure_inside_a_stream__whose_response_is_not_known__ends_it_with_an_error(routed: Routed) -> None:
    gateway, _ = routed(openai=[stream(*HEAD[1:], end="reset")])

    with gateway.openai() as client:
        *_, last = client.responses.create(model="gpt-5", input="Hi", stream=True)

    assert (last.type, last.sequence_number) == ("error", 4)


def test_response_that_was_cut_off__is_recorded_as_such(routed: Routed) -> None:
    cut = {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    gateway, _ = routed(openai=[raw(200, json.dumps(cut).encode())])

    answer = ask(gateway, REQUEST)

    assert answer.json() == cut
    assert gateway.record(answer).finish_reason == "length"


def test_response_that_failed__is_an_error_with_its_status(routed: Routed) -> None:
    error = {"code": "rate_limit_exceeded", "message": "Slow down"}
    failed = {**RESPONSE, "status": "failed", "error": error, "output": []}
    gateway, _ = routed({"retry_enabled": False}, openai=[raw(200, json.dumps(failed).encode())])

    with gateway.openai() as client, pytest.raises(openai.InternalServerError, match="Slow down"):
        client.responses.create(model="gpt-5", input="Hi")
