"""Tests Claude in Microsoft Foundry against the requests and addresses of the vendor's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import AnthropicFoundry

from integrations.providers.base import Credentials, UpstreamRequest
from integrations.registry import adapter_for, resolve
from tests.fakes.dialects.anthropic import FOUNDRY_FAKE
from tests.fakes.dialects.story import Story
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.integrations.exchanges import chat_request

FOUNDRY = adapter_for("azure_anthropic")
RESOURCE = "https://mine.services.ai.azure.com"
MODEL = "claude-opus-4-8"
USER = {"role": "user", "content": "Hi"}
STORY = Story(text="Hallo", model=MODEL)
KEY = "key"
ENTRA_TOKEN = "eyJ0eXAi.eyJhdWQi.c2ln"


def built(base_url: str = RESOURCE, key: str = KEY, *, stream: bool = False, **extra: str) -> UpstreamRequest:
    request = chat_request(MODEL, messages=[USER], max_tokens=9, stream=stream)
    return FOUNDRY.build_request(request, Credentials(1, "azure_anthropic", base_url, key, extra))


@pytest.fixture
def resource() -> Iterator[tuple[str, list[Received]]]:
    requests: list[Received] = []

    async def answer(received: Received, connection: Connection) -> None:
        requests.append(received)
        FOUNDRY_FAKE.read(received.path, received.headers, received.body)
        if json.loads(received.body).get("stream"):
            events = FOUNDRY_FAKE.stream(STORY)
            await connection.send_whole(200, b"".join(events.events), {"content-type": "text/event-stream"})
        else:
            await connection.send_whole(200, FOUNDRY_FAKE.whole(STORY).body, {"content-type": "application/json"})

    with UpstreamServer(answer) as server:
        yield server.url, requests


def block_types(client: AnthropicFoundry, *, stream: bool) -> list[str]:
    """Returns the types of the blocks that the client reads."""
    messages: Any = [USER]
    if not stream:
        return [block.type for block in client.messages.create(model=MODEL, max_tokens=9, messages=messages).content]
    with client.messages.stream(model=MODEL, max_tokens=9, messages=messages) as events:
        return [block.type for block in events.get_final_message().content]


@pytest.mark.parametrize("secret", ["key", ENTRA_TOKEN])
@pytest.mark.parametrize("stream", [False, True])
def test_request__of_the_official_client__ours_is_the_same(
    resource: tuple[str, list[Received]], secret: str, stream: bool
) -> None:
    url, requests = resource
    access: Any = {"azure_ad_token_provider": lambda: secret} if secret == ENTRA_TOKEN else {"api_key": secret}
    with AnthropicFoundry(base_url=f"{url}/anthropic/", **access) as client:
        assert block_types(client, stream=stream) == ["text"]
    ours, theirs = built(url, secret, stream=stream), requests[0]
    assert ours.url == f"{url}{theirs.path}"
    assert json.loads(ours.body) == json.loads(theirs.body)
    for name in ("x-api-key", "api-key", "authorization"):
        assert ours.headers.get(name) == theirs.headers.get(name)
    assert secret not in repr(ours)


def test_model__of_claude__served_by_the_vendor_first() -> None:
    served = [candidate.provider for candidate in resolve(MODEL, {"azure_anthropic", "anthropic"})]
    assert served == ["anthropic", "azure_anthropic"]
    assert [candidate.provider for candidate in resolve(MODEL, {"azure_anthropic"})] == ["azure_anthropic"]
