"""Tests Claude on Vertex AI against the requests of the vendor's own client and the answers that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import AnthropicVertex

from integrations.providers.base import Credentials, UpstreamRequest
from integrations.registry import adapter_for
from tests.fakes.dialects.anthropic import FAKE
from tests.fakes.dialects.story import Call, Story
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.integrations.exchanges import listed_request

VERTEX = adapter_for("google_vertex")
HOST = "https://us-east5-aiplatform.googleapis.com/v1"
MODEL = "claude-opus-4-8"
USER = {"role": "user", "content": "Hi"}
STORY = Story(text="Hallo", calls=(Call("toolu_1", "ping", {"n": 1}),), finish="tool_calls", model=MODEL)


def access(**options: str) -> Credentials:
    return Credentials(1, "google_vertex", "", "ya29.token", {"project": "p", "location": "us-east5", **options})


def built(model: str = MODEL, **fields: Any) -> UpstreamRequest:
    request = listed_request("google_vertex", model, **{"messages": [USER], "max_tokens": 9, **fields})
    return VERTEX.build_request(request, access())


@pytest.fixture
def googles_front() -> Iterator[tuple[str, list[Received]]]:
    requests: list[Received] = []

    async def answer(received: Received, connection: Connection) -> None:
        requests.append(received)
        if received.path.endswith(":streamRawPredict"):
            events = FAKE.stream(STORY)
            await connection.send_whole(200, b"".join(events.events), {"content-type": "text/event-stream"})
        else:
            await connection.send_whole(200, FAKE.whole(STORY).body, {"content-type": "application/json"})

    with UpstreamServer(answer) as server:
        yield server.url, requests


def block_types(client: AnthropicVertex, *, stream: bool) -> list[str]:
    """Returns the types of the blocks that the client reads."""
    messages: Any = [USER]
    if not stream:
        return [block.type for block in client.messages.create(model=MODEL, max_tokens=9, messages=messages).content]
    with client.messages.stream(model=MODEL, max_tokens=9, messages=messages) as events:
        return [block.type for block in events.get_final_message().content]


@pytest.mark.parametrize("stream", [False, True])
def test_request__of_the_official_client__ours_is_the_same(
    googles_front: tuple[str, list[Received]], stream: bool
) -> None:
    url, requests = googles_front
    with AnthropicVertex(project_id="p", region="us-east5", access_token="ya29.token", base_url=f"{url}/v1") as client:
        assert block_types(client, stream=stream) == ["text", "tool_use"]
    ours, theirs = built(stream=stream), requests[0]
    assert ours.url == f"{HOST.removesuffix('/v1')}{theirs.path}"
    assert ours.headers["authorization"] == theirs.headers["authorization"]
    assert "x-api-key" not in ours.headers
    sent, expected = json.loads(ours.body), json.loads(theirs.body)
    # The client sends a later version, which no longer has sampling parameters.
    assert sent.pop("anthropic_version") == "vertex-2023-10-16"
    assert expected.pop("anthropic_version")
    assert sent == expected
