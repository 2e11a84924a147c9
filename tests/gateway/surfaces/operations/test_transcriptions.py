"""Transcriptions of audio, sent as OpenAI's SDK sends them: a form with a file."""

from __future__ import annotations

import json
from decimal import Decimal
from email import message_from_bytes
from typing import Any

import openai
import pytest

from tests.fakes.scripted import raw, status
from tests.fakes.upstream import Received
from tests.gateway.cache.test_cache import wait_until_stored
from tests.gateway.conftest import Routed
from tests.gateway.service import PRICED_MODEL, Gateway

AUDIO = b"RIFF\r\n\r\n--not-a-boundary\x00\xff" * 500
PRICED = f"openai/{PRICED_MODEL}"
JSON = {"content-type": "application/json"}
TRANSCRIPT = {
    "text": "Hello there",
    "usage": {
        "type": "tokens",
        "input_tokens": 14,
        "input_token_details": {"text_tokens": 4, "audio_tokens": 10},
        "output_tokens": 3,
        "total_tokens": 17,
    },
}


def transcribed(**extra: Any) -> Any:
    return raw(200, json.dumps({**TRANSCRIPT, **extra}).encode(), JSON)


def form_of(sent: Received) -> dict[str, bytes]:
    """Returns the fields of a form as Python's own parser of mail reads them."""
    head = f"content-type: {sent.headers['content-type']}\r\n\r\n".encode()
    message = message_from_bytes(head + sent.body)
    found = {}
    for part in message.walk():
        content = part.get_payload(decode=True)
        if isinstance(content, bytes):
            found[str(part.get_param("name", header="content-disposition"))] = content
    return found


def test_form__reaches_the_vendor_with_its_file(routed: Routed) -> None:
    gateway, scripts = routed(openai=[transcribed()])

    with gateway.openai() as client:
        made = client.audio.transcriptions.with_raw_response.create(
            model=PRICED, file=("hello.wav", AUDIO), prompt="A greeting", language="en", temperature=0.2
        )

    (sent,) = scripts["openai"].received
    assert made.parse().text == "Hello there"
    assert sent.path.endswith("/audio/transcriptions")
    assert AUDIO in sent.body
    fields = form_of(sent)
    assert (fields["model"], fields["prompt"], fields["language"]) == (PRICED_MODEL.encode(), b"A greeting", b"en")
    record = gateway.record(made.headers["x-request-id"])
    assert (record.operation, record.model, record.prompt_tokens, record.completion_tokens) == (
        "transcriptions",
        PRICED_MODEL,
        14,
        3,
    )
    assert Decimal(record.cost_usd) == (Decimal(14) * 2 + Decimal(3) * 8) / 1_000_000
    (entry,) = gateway.service.entries(record.request_id)
    assert json.loads(entry.request)["messages"] == [{"role": "user", "content": "A greeting"}]
    assert json.loads(entry.response)["text"] == "Hello there"


def test_form_with_the_vendors_own_name__passes_byte_by_byte(routed: Routed) -> None:
    gateway, scripts = routed(openai=[transcribed()])
    body = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n'
    body += b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + AUDIO + b"\r\n--b--\r\n"
    headers = {**gateway.headers, "content-type": "multipart/form-data; boundary=b"}

    got = gateway.client.post("/api/gateway/v1/audio/transcriptions", content=body, headers=headers)

    assert got.status_code == 200
    assert scripts["openai"].received[0].body == body
    assert scripts["openai"].received[0].headers["content-type"] == "multipart/form-data; boundary=b"


@pytest.mark.parametrize("usage", [{"type": "duration", "seconds": 3}, None])
def test_answer_that_counts_no_tokens__has_an_unknown_cost(routed: Routed, usage: Any) -> None:
    gateway, _ = routed(openai=[transcribed(usage=usage)])

    with gateway.openai() as client:
        made = client.audio.transcriptions.with_raw_response.create(model=PRICED, file=("hello.wav", AUDIO))

    assert "cost unknown" in made.headers["x-svc-warning"]
    assert gateway.record(made.headers["x-request-id"]).cost_known is False


def test_text__is_text(routed: Routed) -> None:
    gateway, _ = routed(openai=[raw(200, b"Hello there\n", {"content-type": "text/plain"})])

    with gateway.openai() as client:
        made = client.audio.transcriptions.with_raw_response.create(
            model="whisper-1", file=("hello.wav", AUDIO), response_format="text"
        )

    assert made.text == "Hello there\n"
    assert made.headers["content-type"] == "text/plain; charset=utf-8"


def test_provider_that_fails__is_followed_by_another_of_the_model(routed: Routed) -> None:
    gateway, scripts = routed(
        {"fallback_enabled": True, "retry_enabled": False}, openai=[status(503)], groq=[transcribed()]
    )

    with gateway.openai() as client:
        made = client.audio.transcriptions.with_raw_response.create(model="whisper-1", file=("hello.wav", AUDIO))

    assert made.headers["x-svc-provider"] == "groq"
    assert form_of(scripts["groq"].received[0])["model"] == b"whisper-1"


def test_cache__knows_a_form_by_its_fields_and_its_file(routed: Routed) -> None:
    gateway, scripts = routed({"cache_ttl_seconds": 60}, openai=[transcribed()])

    with gateway.openai() as client:
        first = client.audio.transcriptions.with_raw_response.create(model=PRICED, file=("hello.wav", AUDIO))
        wait_until_stored(gateway)
        again = client.audio.transcriptions.with_raw_response.create(model=PRICED, file=("hello.wav", AUDIO))
        other = client.audio.transcriptions.with_raw_response.create(model=PRICED, file=("hello.wav", AUDIO + b"x"))

    statuses = [made.headers["x-svc-cache"] for made in (first, again, other)]
    assert statuses == ["miss", "hit", "miss"]
    assert again.text == first.text
    assert len(scripts["openai"].received) == 2


@pytest.mark.parametrize(
    ("fields", "files", "named"),
    [
        ({}, {"file": AUDIO}, "model"),
        ({"model": "whisper-1", "language": "en"}, {}, "file"),
        ({"model": "whisper-1", "stream": "true"}, {"file": AUDIO}, "stream"),
        ({"model": "whisper-1", "models": "a"}, {"file": AUDIO}, "models"),
        ({"model": "whisper-1", "response_format": "pdf"}, {"file": AUDIO}, "response_format"),
    ],
)
def test_field_at_fault__is_named(
    gateway: Gateway, fields: dict[str, str], files: dict[str, bytes], named: str
) -> None:
    body = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), value.encode())
        for name, value in fields.items()
    )
    for name, content in files.items():
        body += b'--b\r\nContent-Disposition: form-data; name="%b"; filename="a"\r\n\r\n%b\r\n' % (
            name.encode(),
            content,
        )
    headers = {**gateway.headers, "content-type": "multipart/form-data; boundary=b"}

    got = gateway.client.post("/api/gateway/v1/audio/transcriptions", content=body + b"--b--\r\n", headers=headers)

    assert got.status_code == 400
    assert got.json()["error"]["message"].startswith(f"{named}: ")


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"--", b"--b\r\n", b"--b\r\nx: y\r\n\r\nz", b"--b\r\nx: y\r\n\r\nz\r\n--b--"]
)
def test_body_that_is_no_form__is_refused(gateway: Gateway, body: bytes) -> None:
    got = gateway.client.post("/api/gateway/v1/audio/transcriptions", content=body, headers=gateway.headers)

    assert got.status_code == 400
    assert "form" in got.json()["error"]["message"]


def test_vendors_refusal__is_passed_on(routed: Routed) -> None:
    gateway, _ = routed(openai=[status(400, "Audio file is too short")])

    with gateway.openai() as client, pytest.raises(openai.BadRequestError, match="too short"):
        client.audio.transcriptions.create(model="whisper-1", file=("hello.wav", AUDIO))
