"""Tests recorded requests that go another way: to another vendor, in the vendor's own words, or with its own answer."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from integrations.providers.base import ChatRequest
from integrations.providers.errors import UnsupportedParameterError
from integrations.registry import adapter_for
from tests.integrations.recordings.accepted import ACCEPTED
from tests.integrations.recordings.replays import exchanges_of
from tests.integrations.recordings.requests import credentials_of, request_of
from tests.integrations.reverse import google
from tests.recordings import OPENAI_DIALECT, Recording, recordings_of

pytestmark = pytest.mark.recordings

DIALECT = recordings_of(OPENAI_DIALECT)
MISTRAL = [recording for recording in DIALECT if recording.provider == "mistral"]
LOOKALIKES = [recording for recording in DIALECT if recording.provider != "mistral"]
GOOGLES = exchanges_of(recordings_of("google.generateContent")).whole


@pytest.mark.parametrize("recording", LOOKALIKES, ids=str)
def test_request__recorded_and_sent_as_a_fallback__accepted_by_the_sdks_types(recording: Recording) -> None:
    request, accepts = replace(request_of(recording), crosses_vendor=True), ACCEPTED[OPENAI_DIALECT]
    try:
        upstream = adapter_for(recording.provider).build_request(request, credentials_of(recording))
    except UnsupportedParameterError as refused:
        assert refused.parameter in {*recording.request}
        return
    body = json.loads(upstream.body)
    assert accepts(recording.request) <= accepts(body)
    messages = recording.request["messages"]
    roles = [{"developer": "system"}.get(message["role"], message["role"]) for message in messages]
    says_json = "json" in json.dumps(messages).lower()
    if recording.request.get("response_format") == {"type": "json_object"} and not says_json:
        roles = ["system", *roles]  # OpenAI refuses such a request, so the word is added.
    assert [message["role"] for message in body["messages"]] == roles


@pytest.mark.parametrize("recording", MISTRAL, ids=str)
def test_request__recorded_in_mistrals_own_words__the_same_bytes(recording: Recording) -> None:
    body = json.dumps(recording.request).encode()
    request = ChatRequest(recording.model, recording.stream, body, recording.request)
    upstream = adapter_for("mistral").build_request(request, credentials_of(recording))
    assert upstream.body is body or recording.status == 422
    assert json.loads(upstream.body) == recording.request


@pytest.mark.parametrize("recording", GOOGLES, ids=str)
def test_answer__recorded_and_sent_back__signature_on_its_part(recording: Recording) -> None:
    """The entries of an answer go back unchanged, through the message that a client keeps."""
    parts = json.loads(recording.body)["candidates"][0].get("content", {}).get("parts", [])
    adapter, request = adapter_for(recording.provider), request_of(recording)
    answer = json.loads(adapter.parse_response(request, recording.body).body)
    message = answer["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in message.get("tool_calls", ())]
    fields = {**request.fields, "messages": [*request.fields["messages"], message, *results]}
    again = ChatRequest(recording.model, recording.stream, b"", fields)
    contents = json.loads(adapter.build_request(again, credentials_of(recording)).body)["contents"]
    turns = [content for content in contents if content["role"] == "model"]
    sent = turns[-1]["parts"] if parts else []
    kept = [part for part in parts if not part.get("thought")]
    assert google.comparable({"contents": [{"parts": sent}]}, keep_ids=False) == google.comparable(
        {"contents": [{"parts": kept}]}, keep_ids=False
    )
