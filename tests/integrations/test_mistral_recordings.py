"""Compares every recorded exchange with Mistral with the vendor's SDK (`test_openai_recordings` does so with
OpenAI's)."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from pydantic import ValidationError

from integrations.providers.base import ChatRequest
from integrations.providers.mistral import ADAPTER
from tests.integrations.adapters.assembled import assembled
from tests.integrations.exchanges import credentials, decoded
from tests.integrations.mistral_sdk import assert_accepted, read_answer, read_stream, text_of, thinking_of
from tests.integrations.recorded_exchanges import client_request, exchanges_of
from tests.integrations.reverse.mistral import as_openai
from tests.recordings import OPENAI_DIALECT, Recording, recordings_of

pytestmark = pytest.mark.recordings

EXCHANGES = exchanges_of(recording for recording in recordings_of(OPENAI_DIALECT) if recording.provider == "mistral")


def request_of(recording: Recording) -> ChatRequest:
    return client_request(recording, as_openai(recording.request))


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__sent_again_as_it_was(recording: Recording) -> None:
    request = ADAPTER.build_request(request_of(recording), credentials("mistral"))
    body = json.loads(request.body)
    assert body == recording.request
    assert not request.warnings
    assert request.url == f"https://api.mistral.ai{recording.path}"
    if recording.status == 422:
        with pytest.raises(ValidationError):
            assert_accepted(body)  # The vendor itself refused the recorded request.
    else:
        assert_accepted(body)


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded_as_it_is__the_same_bytes(recording: Recording) -> None:
    """Mistral gets the request of a Mistral client unchanged."""
    body = json.dumps(recording.request).encode()
    request = ChatRequest(recording.model, recording.stream, body, recording.request)
    upstream_request = ADAPTER.build_request(request, credentials("mistral"))
    assert upstream_request.body is body or recording.status == 422
    assert json.loads(upstream_request.body) == recording.request


@pytest.mark.parametrize("recording", EXCHANGES.whole, ids=str)
def test_answer__recorded__as_the_sdk_reads_it(recording: Recording) -> None:
    answer = ADAPTER.parse_response(request_of(recording), recording.body)
    expected = read_answer(recording.body)
    for choice, theirs in zip(json.loads(answer.body)["choices"], expected.choices, strict=True):
        assert theirs.message is not None
        assert (choice["message"]["content"] or "") == text_of(theirs.message.content)
        assert choice["message"].get("reasoning_content", "") == thinking_of(theirs.message.content)
        assert [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in choice["message"].get("tool_calls") or ()
        ] == [(call.id, call.function.name, call.function.arguments) for call in theirs.message.tool_calls or ()]
        assert choice["finish_reason"] == theirs.finish_reason
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == expected.usage.prompt_tokens
    assert answer.usage.completion_tokens == expected.usage.completion_tokens


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded__as_the_sdk_reads_it(recording: Recording) -> None:
    stream = ADAPTER.stream(request_of(recording))
    joined = assembled(decoded(stream.feed(recording.body) + stream.closing()))
    text, thinking, finish, usage = "", "", None, None
    calls: dict[int, list[str]] = defaultdict(lambda: ["", "", ""])
    for chunk in read_stream(recording.body):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += text_of(choice.delta.content)
            thinking += thinking_of(choice.delta.content)
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                known = calls[call.index or 0]
                known[0] = call.id or known[0]
                known[1] += call.function.name
                known[2] += str(call.function.arguments)
    message = joined["message"]
    assert (message["content"] or "") == text
    assert message.get("reasoning_content", "") == thinking
    assert [
        [call["id"], call["function"]["name"], call["function"]["arguments"]] for call in message.get("tool_calls", ())
    ] == list(calls.values())
    assert joined["finish_reason"] == finish
    assert usage is not None
    assert stream.usage is not None
    assert (stream.usage.prompt_tokens, stream.usage.completion_tokens) == (
        usage.prompt_tokens,
        usage.completion_tokens,
    )
