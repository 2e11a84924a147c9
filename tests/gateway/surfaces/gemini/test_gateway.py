"""The Gemini API through the gateway: streams in both forms, failures, keys, and embeddings of other vendors."""

from __future__ import annotations

import json
import threading
from typing import Any

from tests.fakes import scripted as play
from tests.fakes.dialects.story import Story
from tests.fakes.scripted import status
from tests.gateway.conftest import Routed, Scripted
from tests.gateway.surfaces.embeddings.vectors import embedding
from tests.gateway.surfaces.gemini.clients import ASK, read_stream
from tests.gateway.surfaces.ways import answering
from tests.tables.cases import tabled

BASE = "/api/gateway/v1beta/models"
GROQ = f"{BASE}/groq/llama-3.3-70b-versatile"


def test_stream__without_a_form__is_one_json_array(routed: Routed) -> None:
    story = answering("groq", Story(text="Hello there"))
    gateway, _ = routed(groq=[story, story])

    array = gateway.client.post(f"{GROQ}:streamGenerateContent", json=ASK, headers=gateway.headers)
    events = gateway.client.post(f"{GROQ}:streamGenerateContent?alt=sse", json=ASK, headers=gateway.headers)

    assert array.headers["content-type"] == "application/json"
    texts = [part["text"] for one in array.json() for part in one["candidates"][0]["content"]["parts"]]
    assert "".join(texts) == "Hello there"
    sent = [json.loads(line.removeprefix("data: ")) for line in events.text.splitlines() if line]
    assert [one["candidates"] for one in sent] == [one["candidates"] for one in array.json()]


def test_address__name_with_a_slash_alone__is_that_of_the_model(routed: Routed) -> None:
    gateway, _ = routed(groq=[answering("groq", Story(text="Hi"))])

    for method in ("generateContent", "streamGenerateContent?alt=sse"):
        address = f"{GROQ}:{method}".replace("/models/", "/")
        answer = gateway.client.post(address, json=ASK, headers=gateway.headers)
        assert answer.status_code == 200, answer.text


def test_key__in_any_of_its_headers__is_taken_and_in_the_address_refused(routed: Routed) -> None:
    gateway, _ = routed(groq=[answering("groq", Story(text="Hi"))])
    address = f"{GROQ}:generateContent"

    taken = gateway.client.post(address, json=ASK, headers={"x-goog-api-key": gateway.key})
    refused = gateway.client.post(f"{address}?key={gateway.key}", json=ASK, headers=gateway.headers)
    absent = gateway.client.post(address, json=ASK, headers={"api-key": gateway.key})

    assert taken.status_code == 200, taken.text
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert gateway.key not in refused.text
    assert (absent.status_code, absent.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
    assert gateway.record(taken).operation == "generate_content"


@tabled
def test_path__that_is_no_method__is_refused_in_googles_form(
    routed: Routed, path: str, method: str, code: int, name: str
) -> None:
    gateway, _ = routed(groq=[])

    answer = gateway.client.request(method, path, headers=gateway.headers)

    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["status"]) == (code, code, name)


def test_body__larger_than_the_limit__is_refused_in_googles_form(routed: Routed, settings: Any) -> None:
    gateway, scripts = routed(groq=[answering("groq", Story(text="Hi"))])
    body = b" " * (settings.GATEWAY_BODY_BYTES + 1)

    answer = gateway.client.post(f"{GROQ}:generateContent", content=body, headers=gateway.headers)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (413, 413, "INVALID_ARGUMENT")
    assert error["details"][0]["reason"] == "MESSAGE_TOO_LARGE"
    assert not scripts["groq"].received


def test_silence__within_a_stream__is_filled_with_empty_lines_alone(brisk_scripted: Scripted) -> None:
    silence, received = threading.Event(), b""
    word = play.chunk({"content": "word"})
    gateway, _ = brisk_scripted(play.stream(play.ROLE, word, silence, play.FINISH, play.USAGE_CHUNK, play.DONE))
    address = f"{BASE}/openai/gpt-4o:streamGenerateContent?alt=sse"

    with gateway.client.stream("POST", address, json=ASK, headers=gateway.headers) as response:
        for piece in response.iter_raw():
            received += piece
            if b'"word"' in received and received.endswith(b"}\n\n\n\n"):
                silence.set()

    # Google's SDKs take every line that is neither empty nor data for a failure.
    assert all(line.startswith(b"data: ") for line in received.split(b"\n") if line)
    assert b"\n\n\n\n" in received
    assert "".join(one.text or "" for one in read_stream(received)) == "word"


def test_embeddings__of_another_vendor__have_googles_form(routed: Routed) -> None:
    gateway, scripts = routed(openai=[embedding(), embedding()])
    content = {"parts": [{"text": "Hello"}]}
    settings = {"taskType": "RETRIEVAL_QUERY", "outputDimensionality": 8}
    address = f"{BASE}/openai/text-embedding-3-small"

    one = gateway.client.post(f"{address}:embedContent", json={"content": content, **settings}, headers=gateway.headers)
    many = gateway.client.post(
        f"{address}:batchEmbedContents", json={"requests": [{"content": content}] * 2}, headers=gateway.headers
    )

    assert one.status_code == many.status_code == 200, one.text + many.text
    sent: dict[str, Any] = json.loads(scripts["openai"].received[0].body)
    assert sent == {"model": "text-embedding-3-small", "input": ["Hello"], "dimensions": 8}
    assert one.json()["embedding"]["values"]
    assert len(many.json()["embeddings"]) == 2
    assert gateway.record(one).operation == "embeddings"


def test_content__of_a_provider_that_fails__is_googles_error(routed: Routed) -> None:
    gateway, _ = routed(groq=[status(503)])

    answer = gateway.client.post(f"{GROQ}:generateContent", json=ASK, headers=gateway.headers)

    assert (answer.status_code, answer.json()["error"]["status"]) == (503, "UNAVAILABLE")
    assert answer.json()["error"]["details"][0]["reason"] == "PROVIDER_UNAVAILABLE"
