"""Tests every recorded exchange with Cohere: the request to send and the answer read are compared with the vendor's
SDK."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from integrations.providers.base import ChatRequest
from integrations.providers.cohere import ADAPTER
from integrations.providers.usage import Usage
from tests.integrations.adapters.assembled import assembled
from tests.integrations.cohere_sdk import assert_accepted, read_answer, read_stream
from tests.integrations.exchanges import credentials, decoded
from tests.integrations.recorded_exchanges import (
    assert_same_however_cut,
    classified_failure,
    client_request,
    exchanges_of,
    replay,
)
from tests.integrations.reverse.cohere import as_openai
from tests.recordings import Recording, recordings_of

pytestmark = pytest.mark.recordings

EXCHANGES = exchanges_of(recordings_of("cohere.v2_chat"))
REASONS = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
}


def request_of(recording: Recording) -> ChatRequest:
    return client_request(recording, as_openai(recording.request))


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__sent_again_as_it_was(recording: Recording) -> None:
    request = ADAPTER.build_request(request_of(recording), credentials("cohere"))
    body = json.loads(request.body)
    # The SDKs leave `stream` out of a call that does not stream.
    assert body == {"stream": False, **recording.request}
    assert not request.warnings
    assert request.url == f"https://api.cohere.com{recording.path}"
    assert_accepted(body)


def assert_usage(usage: Usage | None, expected: Any) -> None:
    """Asserts that the counts are the model's and that the billed counts are kept beside them."""
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (
        expected.tokens.input_tokens,
        expected.tokens.output_tokens,
    )
    assert (usage.billed_prompt_tokens, usage.billed_completion_tokens) == (
        expected.billed_units.input_tokens,
        expected.billed_units.output_tokens,
    )
    assert usage.cache_read_tokens == (expected.cached_tokens or 0)


@pytest.mark.parametrize("recording", EXCHANGES.whole, ids=str)
def test_answer__recorded__as_the_sdk_reads_it(recording: Recording) -> None:
    answer = ADAPTER.parse_response(request_of(recording), recording.body)
    expected = read_answer(recording.body)
    choice = json.loads(answer.body)["choices"][0]
    message = choice["message"]
    parts = expected.message.content or []
    assert (message["content"] or "") == "".join(part.text for part in parts if part.type == "text")
    thoughts = [part.thinking for part in parts if part.type == "thinking"]
    plan = [expected.message.tool_plan] if expected.message.tool_plan else []
    assert message.get("reasoning_content", "") == "\n".join([*thoughts, *plan])
    calls = expected.message.tool_calls or []
    assert [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])
    ] == [(call.id, call.function.name, call.function.arguments) for call in calls if call.function]
    assert choice["finish_reason"] == answer.finish_reason == REASONS[expected.finish_reason]
    assert_usage(answer.usage, expected.usage)
    for note in message.get("annotations", []):
        cited = note["url_citation"]
        assert message["content"][cited["start_index"] : cited["end_index"]] in {
            citation.text for citation in expected.message.citations or []
        }
    assert len(message.get("citations", [])) == len(expected.message.citations or [])


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded__as_the_sdk_reads_it(recording: Recording) -> None:
    replayed = replay(ADAPTER.stream(request_of(recording)), [recording.body])
    assert replayed.error is None
    events, usage = replayed.events, replayed.stream.usage
    choice = assembled(decoded(events))
    text, reasoning = "", ""
    calls: dict[int, list[str]] = defaultdict(lambda: ["", "", ""])
    for event in read_stream(recording.body):
        match event.type:
            case "content-delta":
                text += event.delta.message.content.text or ""
                reasoning += event.delta.message.content.thinking or ""
            case "tool-plan-delta":
                reasoning += event.delta.message.tool_plan
            case "tool-call-start":
                call = event.delta.message.tool_calls
                calls[event.index] = [call.id, call.function.name, call.function.arguments]
            case "tool-call-delta":
                calls[event.index][2] += event.delta.message.tool_calls.function.arguments
            case "message-end":
                assert choice["finish_reason"] == REASONS[event.delta.finish_reason]
                assert_usage(usage, event.delta.usage)
    assert (choice["message"]["content"] or "") == text == "".join(event.text for event in events)
    assert (choice["message"].get("reasoning_content") or "") == reasoning
    # Cohere sends no arguments for a call without any, while the wire format requires an object.
    assert [
        [call["id"], call["function"]["name"], call["function"]["arguments"]]
        for call in choice["message"].get("tool_calls", [])
    ] == [[call_id, name, arguments or "{}"] for call_id, name, arguments in calls.values()]


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded_and_cut_anywhere__byte_equal(recording: Recording) -> None:
    assert_same_however_cut(recording, lambda: ADAPTER.stream(request_of(recording)))


@pytest.mark.parametrize("recording", EXCHANGES.errors, ids=str)
def test_failure__recorded__kind_of_its_status_and_message_kept(recording: Recording) -> None:
    error = classified_failure(ADAPTER, recording)
    assert json.loads(recording.body)["message"].split(":")[0] in error.message
