"""Tests models of other publishers on Vertex AI: their publisher, their address and their dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mistralai.gcp.client import MistralGCP
from mistralai.gcp.client.models import UserMessage

from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.vertex.publishers import publisher_model
from integrations.registry import adapter_for
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.integrations.exchanges import chat_request, completion
from tests.tables.cases import tabled

VERTEX = adapter_for("google_vertex")
TOKEN = "ya29.token"
MISTRAL = "mistral-medium-3"


def access(secret: str = TOKEN, **options: str) -> Credentials:
    return Credentials(1, "google_vertex", "", secret, {"project": "p", "location": "us-east5", **options})


def built(model: str, credentials: Credentials | None = None, **fields: Any) -> UpstreamRequest:
    return VERTEX.build_request(chat_request(model, **fields), credentials or access())


@tabled
def test_name__any_form__whose_it_is(name: str, publisher: str, model: str) -> None:
    assert publisher_model(name) == (publisher, model)


@pytest.fixture
def googles_front() -> Iterator[tuple[str, list[Received]]]:
    requests: list[Received] = []

    async def answer(received: Received, connection: Connection) -> None:
        requests.append(received)
        await connection.send_whole(200, json.dumps(completion()).encode(), {"content-type": "application/json"})

    with UpstreamServer(answer) as server:
        yield server.url, requests


def test_mistral__called_by_its_official_sdk__the_same_path_and_body(googles_front: tuple[str, list[Received]]) -> None:
    url, requests = googles_front
    sdk = MistralGCP(project_id="p", region="us-east5", access_token="ya29.token", server_url=url)
    sdk.chat.complete(model=MISTRAL, messages=[UserMessage(content="Hi")])
    ours = built(MISTRAL, messages=[{"role": "user", "content": "Hi"}])
    assert ours.url.removeprefix("https://us-east5-aiplatform.googleapis.com") == requests[0].path
    sent = json.loads(requests[0].body)
    assert json.loads(ours.body) == {name: sent[name] for name in ("model", "messages")}
    assert requests[0].headers["authorization"] == ours.headers["authorization"]


def test_failure__echoes_a_secret__taken_out_whoever_answered() -> None:
    built(MISTRAL, access("ya29.an-access-token"))
    for body in (
        b'[{"error": {"code": 401, "message": "bad ya29.an-access-token"}}]',
        b'{"message": "bad ya29.an-access-token"}',
    ):
        assert VERTEX.classify_failure(401, {}, body).message == "bad [redacted]"
