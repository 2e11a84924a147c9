"""Tests Claude on Vertex AI against the requests of the vendor's own client and the answers that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import AnthropicVertex
from msgspec.structs import replace

from integrations.providers.base import Credentials, Media, UpstreamRequest
from integrations.providers.errors import FailureKind
from integrations.registry import adapter_for
from tests.fakes.dialects.anthropic import FAKE
from tests.fakes.dialects.story import Call, Story
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.integrations.adapters.assembled import assembled
from tests.integrations.exchanges import chat_request, decoded, listed_request, run

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


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5@20250929"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5@20250929"),
        ("anthropic/claude-opus-5", "claude-opus-5"),
        ("publishers/anthropic/models/claude-opus-5@default", "claude-opus-5@default"),
    ],
)
def test_model__any_form__in_the_address_alone(model: str, named: str) -> None:
    upstream = built(model)
    assert upstream.url == f"{HOST}/projects/p/locations/us-east5/publishers/anthropic/models/{named}:rawPredict"
    assert "model" not in json.loads(upstream.body)


def test_rules__of_the_generation__as_at_the_vendor() -> None:
    body = json.loads(built("claude-sonnet-4-5@20250929", max_tokens=None, reasoning_effort="low").body)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    assert body["max_tokens"] == 64000


def test_beta__of_the_search_and_of_the_client__in_the_header() -> None:
    upstream = built(web_search_options={}, betas=["a-1"])
    assert upstream.headers["anthropic-beta"] == "a-1,web-search-2025-03-05"
    assert "anthropic-beta" not in built().headers


def test_image__by_address__fetched_by_the_gateway() -> None:
    address = "https://i.test/a.png"
    content = [{"type": "image_url", "image_url": {"url": address}}]
    request = chat_request(MODEL, messages=[{"role": "user", "content": content}])
    assert VERTEX.needs(request, access()).media == (address,)
    fetched = replace(request, media={address: Media("image/png", b"\x89PNG\r\n\x1a\n")})
    (block,) = json.loads(VERTEX.build_request(fetched, access()).body)["messages"][0]["content"]
    assert block["source"]["type"] == "base64"


def test_answer__whole_and_streamed__as_the_vendors() -> None:
    whole = json.loads(VERTEX.parse_response(chat_request(MODEL), FAKE.whole(STORY).body).body)["choices"][0]
    streamed = assembled(decoded(run(VERTEX.stream(chat_request(MODEL, stream=True)), FAKE.stream(STORY).events)))
    for choice in (whole, streamed):
        assert (choice["message"]["content"], choice["finish_reason"]) == ("Hallo", "tool_calls")
        assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"n": 1}


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, FailureKind.REJECTED), (429, FailureKind.RATE_LIMITED), (529, FailureKind.UNAVAILABLE)],
)
def test_failure__in_the_vendors_shape__its_words_kept(status: int, kind: FailureKind) -> None:
    reply = FAKE.failure(status, "no luck")
    error = VERTEX.classify_failure(status, reply.headers, reply.body)
    assert (error.kind, error.message, error.provider) == (kind, "no luck", "google_vertex")
