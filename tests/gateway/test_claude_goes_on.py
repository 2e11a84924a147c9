"""A paused turn of Claude's is continued through the official openai SDK, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of

MODEL = "claude-sonnet-5"
ASK: dict[str, Any] = {"role": "user", "content": "What is new?"}
PAGE = {"type": "web_search_result", "url": "https://a.test", "title": "A", "encrypted_content": "RW5j"}
BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    {"type": "text", "text": "I look."},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "news"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]},
    {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {"query": "more"}},
]
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": BLOCKS}
PAUSED = {**MESSAGE, "stop_reason": "pause_turn", "usage": {"input_tokens": 9, "output_tokens": 4}}


async def pauses(received: Received, connection: Connection) -> None:
    if not json.loads(received.body).get("stream"):
        await connection.send_whole(200, json.dumps(PAUSED).encode(), {"content-type": "application/json"})
        return
    await connection.start_stream()
    for event in events():
        await connection.send_chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    await connection.end_stream()


def events() -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**PAUSED, "content": [], "stop_reason": None}}
    for index, block in enumerate(BLOCKS):
        start = {**block, **({"input": {}} if "input" in block else {})}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        if "input" in block:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": "pause_turn"}, "usage": {"output_tokens": 4}}
    yield {"type": "message_stop"}


@pytest.fixture(scope="module")
def server() -> Iterator[DialectServer]:
    with DialectServer() as running:
        yield running


@pytest.fixture
def gateway(service: GatewayService, server: DialectServer) -> Gateway:
    places = ("anthropic", "openai")
    return service.new_project(integrations=[integration_of(FAKES[name], server.base_url(name)) for name in places])


def answer_of(client: openai.OpenAI, stream: bool, model: str, messages: list[Any]) -> Any:
    if not stream:
        return client.chat.completions.create(model=model, messages=messages).choices[0]
    with client.chat.completions.stream(model=model, messages=messages) as events:
        return events.get_final_completion().choices[0]


@pytest.mark.parametrize("stream", [False, True])
def test_pause__sent_back_as_it_came__goes_on_with_the_vendors_blocks(
    gateway: Gateway, server: DialectServer, stream: bool
) -> None:
    goes_on: Step = answer_with(FAKES["anthropic"], Story(text="Nothing."))
    script = server.play("anthropic", pauses, goes_on)
    with gateway.openai() as client:
        choice = answer_of(client, stream, MODEL, [ASK])
        assert choice.finish_reason == "stop"
        assert choice.message.content == "I look."
        assert choice.message.provider_specific_fields["stop_reason"] == "pause_turn"
        paused = choice.message.model_dump(exclude_none=True)
        assert answer_of(client, stream, MODEL, [ASK, paused]).message.content == "Nothing."
        assert json.loads(script.received[1].body)["messages"] == [ASK, {"role": "assistant", "content": BLOCKS}]
        # Another vendor gets the turn's text without the fields that are Claude's own.
        elsewhere = server.play("openai", answer_with(FAKES["openai"], Story(text="Fine.")))
        history: list[Any] = [ASK, paused, ASK]
        client.chat.completions.create(model="gpt-4o-mini", messages=history)
        assert b"provider_specific_fields" not in elsewhere.received[0].body
