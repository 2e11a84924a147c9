"""Completions of texts, asked for with OpenAI's SDK: forwarded where the provider completes texts, else translated to a
chat completion and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.fakes.scripted import DONE, Step, answer, raw, status, stream
from tests.gateway.conftest import Routed
from tests.gateway.managed import make_prompt
from tests.gateway.service import PRICED_MODEL, Gateway
from tests.tables.cases import tabled

CHAT_MODEL = f"openai/{PRICED_MODEL}"
MODEL = "gpt-3.5-turbo-instruct"
REQUEST = b'{ "model": "gpt-3.5-turbo-instruct",\n "prompt": ["Once", "Twice"], "echo": true, "logprobs": 2 }'
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
HEAD = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL}
ANSWER = {**HEAD, "choices": [{"text": " upon a time", "index": 0, "logprobs": None, "finish_reason": "length"}]}
WHOLE = json.dumps({**ANSWER, "usage": USAGE}, indent=1).encode()


def chunk(text: str, finish: str | None = None, **extra: Any) -> bytes:
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
    return b"data: " + json.dumps({**HEAD, "choices": [choice], **extra}).encode() + b"\n\n"


CHUNKS = [chunk(" upon"), chunk(" a time", "stop")]
USAGE_CHUNK = b"data: " + json.dumps({**HEAD, "choices": [], "usage": USAGE}).encode() + b"\n\n"


def native_stream() -> Step:
    return stream(*CHUNKS, USAGE_CHUNK, DONE)


def post(gateway: Gateway, body: bytes | dict[str, Any]) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {**gateway.headers, "content-type": "application/json"}
    return gateway.client.post("/api/gateway/v1/completions", content=content, headers=headers)


@pytest.fixture
def chat(routed: Routed) -> Iterator[tuple[Gateway, openai.OpenAI]]:
    gateway, _ = routed(openai=[answer("Hello from upstream")])
    with gateway.openai() as client:
        yield gateway, client


def test_chat_model__completes_a_text(chat: tuple[Gateway, openai.OpenAI]) -> None:
    gateway, client = chat
    made = client.completions.with_raw_response.create(
        model=CHAT_MODEL, prompt="Say hello", max_tokens=20, temperature=0.5, user="u"
    )
    completion = made.parse()

    (sent,) = gateway.upstream.scripts[next(reversed(gateway.upstream.scripts))].received
    body = json.loads(sent.body)
    assert body["messages"] == [{"role": "user", "content": "Say hello"}]
    assert (body["max_tokens"], body["temperature"]) == (20, 0.5)
    assert "prompt" not in body
    assert sent.path.endswith("/chat/completions")
    assert completion.object == "text_completion"
    assert [(one.text, one.index, one.finish_reason) for one in completion.choices] == [
        ("Hello from upstream", 0, "stop")
    ]
    assert completion.usage is not None
    assert completion.usage.total_tokens == 18
    record = gateway.record(made.headers["x-request-id"])
    assert (record.operation, record.is_native, record.user_id) == ("completions", False, "u")


def test_chat_model__streams_a_text(chat: tuple[Gateway, openai.OpenAI]) -> None:
    _, client = chat
    with client.completions.create(model=CHAT_MODEL, prompt=["Say hello"], stream=True) as events:
        chunks = list(events)

    assert "".join(one.text for piece in chunks for one in piece.choices) == "Hello from upstream"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert {piece.object for piece in chunks} == {"text_completion"}


@tabled
def test_field__that_no_chat_model_knows__is_refused_by_name(
    gateway: Gateway, change: dict[str, Any], field: str
) -> None:
    got = post(gateway, {"model": CHAT_MODEL, "prompt": "a", **change})

    error = got.json()["error"]
    assert (got.status_code, error["code"]) == (400, "unsupported_parameter")
    assert error["message"].startswith(field)
    assert not gateway.upstream.received


@pytest.mark.parametrize(
    ("body", "field"), [({}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": ["a", 1]}, "prompt")]
)
def test_field_at_fault__is_named(gateway: Gateway, body: dict[str, Any], field: str) -> None:
    got = post(gateway, {"model": CHAT_MODEL, **body})

    assert got.status_code == 400
    assert got.json()["error"]["message"].startswith(field)


def test_model_that_completes_texts__gets_and_gives_the_very_bytes(routed: Routed) -> None:
    gateway, scripts = routed(openai=[raw(200, WHOLE)])

    got = post(gateway, REQUEST)

    (sent,) = scripts["openai"].received
    assert (got.status_code, got.content, sent.body) == (200, WHOLE, REQUEST)
    assert sent.path.endswith("/completions")
    assert "/chat/" not in sent.path
    record = gateway.record(got)
    assert (record.operation, record.is_native, record.finish_reason) == ("completions", True, "length")
    assert (record.prompt_tokens, record.completion_tokens) == (5, 7)


@pytest.mark.parametrize("with_usage", [False, True])
def test_stream_of_such_a_model__is_relayed_and_counted(routed: Routed, with_usage: bool) -> None:
    gateway, scripts = routed(openai=[native_stream()])
    options = {"stream_options": {"include_usage": True}} if with_usage else {}

    got = post(gateway, {"model": MODEL, "prompt": "Once", "stream": True, **options})

    assert got.content == b"".join([*CHUNKS, *([USAGE_CHUNK] if with_usage else []), DONE])
    assert json.loads(scripts["openai"].received[0].body)["stream_options"] == {"include_usage": True}
    record = gateway.record(got)
    assert (record.prompt_tokens, record.completion_tokens, record.finish_reason) == (5, 7, "stop")


@pytest.mark.parametrize("steps", [[raw(200, b"{}")], [raw(200, b'{"error": {"message": "overloaded"}}')]])
def test_answer_that_is_none__is_the_providers_fault(routed: Routed, steps: list[Step]) -> None:
    gateway, _ = routed({"retry_enabled": False}, openai=steps)

    assert post(gateway, {"model": MODEL, "prompt": "Once"}).status_code in (500, 503)


def test_stream_that_breaks_off__ends_with_an_error(routed: Routed) -> None:
    gateway, _ = routed({"retry_enabled": False}, openai=[stream(CHUNKS[0], end="hang_up")])

    got = post(gateway, {"model": MODEL, "prompt": "Once", "stream": True})

    first, failure, last = got.content.split(b"\n\n")[:3]
    assert first + b"\n\n" == CHUNKS[0]
    assert json.loads(failure.removeprefix(b"data: "))["error"]["code"]
    assert last == b"data: [DONE]"


def test_provider_that_fails__is_followed_by_a_chat_model(routed: Routed) -> None:
    gateway, scripts = routed(
        {"fallback_enabled": True, "retry_enabled": False}, openai=[status(503)], groq=[answer("Hello")]
    )

    got = post(gateway, {"model": MODEL, "models": ["groq/llama"], "prompt": "Once"})

    assert (got.status_code, got.json()["choices"][0]["text"]) == (200, "Hello")
    assert json.loads(scripts["groq"].received[0].body)["messages"] == [{"role": "user", "content": "Once"}]
    record = gateway.record(got)
    assert (record.provider, record.is_native, record.fallback_used) == ("groq", False, True)


def test_managed_prompt__stands_before_the_text(routed: Routed) -> None:
    gateway, scripts = routed(openai=[raw(200, WHOLE), answer("Hello")])
    prompt = make_prompt(gateway, "Be brief.")

    own = post(gateway, {"model": MODEL, "prompt": "Once", "prompt_config": prompt.name})
    translated = post(gateway, {"model": CHAT_MODEL, "prompt": "Once", "prompt_config": prompt.name})

    assert (own.status_code, translated.status_code) == (200, 200)
    first, second = (json.loads(sent.body) for sent in scripts["openai"].received)
    assert first["prompt"] == "Be brief.\n\nOnce"
    assert "prompt_config" not in first
    assert [message["role"] for message in second["messages"]] == ["system", "user"]


def test_guardrail_of_answers__reads_the_translated_text(routed: Routed) -> None:
    settings = {"guardrails": {"trust_mode": "enforce", "mask_output_pii": True}}
    gateway, _ = routed(settings, openai=[answer("mail maria.keller@gmx.net")])

    got = post(gateway, {"model": CHAT_MODEL, "prompt": "Whom?"})

    assert "maria.keller" not in got.json()["choices"][0]["text"]
