"""Recorded exchanges of all providers through their adapters and every surface, read by the vendors' official SDKs."""

from __future__ import annotations

import json
import random
from typing import Any
from unittest.mock import patch

import anthropic
import pytest

from gateway.errors import from_provider
from integrations.providers.base import Adapter, ChatRequest
from integrations.registry import adapter_for
from tests.fakes.replay import body_of
from tests.gateway.native import NATIVE
from tests.gateway.own_exchanges import own_exchanges
from tests.gateway.recorded import Recording, exchanges, sse_payloads
from tests.gateway.reversed import openai_request
from tests.gateway.surfaces.golden.answers import STREAMED, WHOLE, Answer
from tests.gateway.surfaces.golden.order import CHECKS, check_order_of_messages, check_order_of_responses
from tests.gateway.surfaces.golden.streams import REQUEST_ID, SURFACES, encoded, request_of
from tests.gateway.surfaces.messages.clients import client_of
from tests.gateway.surfaces.messages.clients import events_of as messages_events
from tests.integrations.adapters.subject import pieces
from tests.recordings import OPENAI_DIALECT, recordings_of
from tests.recordings import Recording as Known

pytestmark = pytest.mark.recordings

TRANSLATED = ("responses", "messages", "gemini")
_SPLITS = 6
# How the event begins that ends a stream which broke off.
_FAILURES = {"responses": "event: response.failed\n", "messages": "event: error\n", "gemini": '{"error":'}


def is_of_today(exchange: Recording) -> bool:
    """Returns False for a request with functions of OpenAI's older form, which neither surface makes."""
    return "functions" not in (exchange["request"]["body"] or {})


ALL = [one for one in [*own_exchanges(), *exchanges(OPENAI_DIALECT, *NATIVE)] if is_of_today(one)]
ANSWERED = [one for one in ALL if one["response"]["status"] == 200]
FAILED = [one for one in ALL if one["response"]["status"] != 200]
STREAMS = [one for one in ANSWERED if one["response"]["stream"]]
BROKEN = [one for one in STREAMS if "resp:stream_error" in one["features"]]
VENDORS = [*recordings_of("openai.responses"), *recordings_of("anthropic.messages")]


def named(exchange: Recording) -> str:
    return f"{exchange['provider']}/{exchange['name']}"


def adapter_of(exchange: Recording) -> tuple[Adapter, ChatRequest]:
    fields = exchange["request"]["body"] if exchange["api"] == OPENAI_DIALECT else openai_request(exchange)
    fields = {"model": exchange["model"], **(fields or {})}
    stream = bool(exchange["response"]["stream"])
    request = ChatRequest(fields["model"], stream, json.dumps(fields).encode(), fields)
    return adapter_for(exchange["provider"]), request


def frames_of(surface: str, exchange: Recording) -> bytes:
    adapter, request = adapter_of(exchange)
    return encoded(surface, adapter.stream(request), [body_of(exchange["response"])])


def through(surface: str, exchange: Recording) -> Answer:
    if exchange["response"]["stream"]:
        return STREAMED[surface](frames_of(surface, exchange))
    adapter, request = adapter_of(exchange)
    parsed = adapter.parse_response(request, body_of(exchange["response"]))
    return WHOLE[surface](SURFACES[surface].answer(request_of(surface), parsed.body, REQUEST_ID))


def expected_of(surface: str, chat: Answer) -> Answer:
    """Returns the answer of chat completions as the surface says it."""
    if surface == "responses":
        return chat
    has_refused = bool(chat.refusal) and chat.finish == "stop"
    refusal = chat.refusal if has_refused or surface != "gemini" else ""
    return Answer(
        # A refusal that is the whole answer has no place but the text.
        text=chat.text or ("" if chat.calls or chat.reasoning else refusal),
        reasoning=chat.reasoning,
        # Google's SDK reads the message of an end at Vertex AI alone.
        refusal="" if surface == "gemini" else chat.refusal,
        calls=chat.calls,
        finish="content_filter" if has_refused else chat.finish,
        usage=chat.usage or (0, 0, 0),
    )


@pytest.mark.parametrize("surface", TRANSLATED)
@pytest.mark.parametrize("exchange", [one for one in ANSWERED if one not in BROKEN], ids=named)
def test_answer__recorded__the_sdk_reads_the_same_as_from_chat(surface: str, exchange: Recording) -> None:
    assert through(surface, exchange) == expected_of(surface, through("chat", exchange))


@pytest.mark.parametrize("surface", TRANSLATED)
@pytest.mark.parametrize("exchange", [one for one in STREAMS if one not in BROKEN], ids=named)
def test_stream__recorded__keeps_the_vendors_order(surface: str, exchange: Recording) -> None:
    CHECKS[surface](frames_of(surface, exchange))


@pytest.mark.parametrize("surface", TRANSLATED)
@pytest.mark.parametrize("exchange", STREAMS, ids=named)
def test_stream__recorded_and_cut_anywhere__the_same_bytes(surface: str, exchange: Recording) -> None:
    (adapter, request), data = adapter_of(exchange), body_of(exchange["response"])
    chance = random.Random(exchange["name"])
    with patch("time.time", return_value=1_800_000_000.0):
        whole = encoded(surface, adapter.stream(request), [data])
        for _ in range(_SPLITS):
            cuts = [chance.randrange(len(data)) for _ in range(chance.randint(1, 200))]
            assert encoded(surface, adapter.stream(request), pieces(data, cuts)) == whole


@pytest.mark.parametrize("surface", TRANSLATED)
@pytest.mark.parametrize("exchange", BROKEN, ids=named)
def test_stream__recorded_with_an_error__ends_with_it(surface: str, exchange: Recording) -> None:
    *_, last, rest = frames_of(surface, exchange).decode().split("\n\n")
    assert rest == ""
    assert last.startswith(_FAILURES[surface])


@pytest.mark.parametrize("exchange", FAILED, ids=named)
def test_failure__recorded__is_the_same_error_of_each_sdk(exchange: Recording) -> None:
    """OpenAI's SDK raises the class of the status from the error of Responses, as from that of chat completions."""
    response = exchange["response"]
    adapter, _ = adapter_of(exchange)
    error = from_provider(adapter.classify_failure(response["status"], response["headers"], body_of(response)))
    of_chat = SURFACES["chat"].error(error, REQUEST_ID)
    assert SURFACES["responses"].error(error, REQUEST_ID) == of_chat
    with pytest.raises(anthropic.APIStatusError) as raised:
        client_of(error.status, SURFACES["messages"].error(error, REQUEST_ID), "application/json").messages.create(
            model="m", max_tokens=1, messages=[{"role": "user", "content": "Hi"}]
        )
    assert raised.value.status_code == error.status
    body: Any = raised.value.body
    # A prompt beyond the context window begins with the vendor's own words for it, by which agents recognise it.
    assert body["error"]["message"].removeprefix("prompt is too long: ") == json.loads(of_chat)["error"]["message"]


@pytest.mark.parametrize("recording", [one for one in VENDORS if one.stream and one.status == 200], ids=str)
def test_vendors_own_stream__keeps_the_order_that_the_surfaces_keep(recording: Known) -> None:
    events = sse_payloads(recording.body.decode())
    if events[0]["type"] == "error":
        return
    check = check_order_of_responses if recording.api == "openai.responses" else check_order_of_messages
    check(events)


CLAUDES = [one for one in recordings_of("anthropic.messages") if one.stream and b"event: error" not in one.body]


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    """Returns the kinds of the events in order, a run of deltas as the kinds in it, without pings. A chat completion
    has citations behind the text that they belong to, and Anthropic in front of it."""
    kinds: list[str] = []
    deltas: set[str] = set()
    for event in events:
        if event["type"] == "content_block_delta":
            deltas.add(event["delta"]["type"])
        elif event["type"] != "ping":
            kinds += sorted(deltas)
            deltas.clear()
            kinds.append(" ".join(filter(None, [event["type"], event.get("content_block", {}).get("type")])))
    return kinds


@pytest.mark.parametrize("recording", CLAUDES, ids=str)
def test_stream_of_claude__translated_both_ways__has_the_vendors_events_in_order(recording: Known) -> None:
    request = ChatRequest(recording.model, True, b"{}", dict(recording.request))
    frames = encoded("messages", adapter_for("anthropic").stream(request), [recording.body])
    assert kinds_of(messages_events(frames)) == kinds_of(sse_payloads(recording.body.decode()))
