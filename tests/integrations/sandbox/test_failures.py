"""Tests the sandbox's failures, broken streams and missing answers through the official SDK."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import httpx
import openai
import pytest
import requests
from django.conf import settings
from openai import OpenAI

from integrations.sandbox.behaviours import BEHAVIOURS
from tests.integrations.sandbox.requests import HELLO
from tests.waiting import TIMEOUT_SECONDS


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("error-400", openai.BadRequestError),
        ("error-401", openai.AuthenticationError),
        ("error-403", openai.PermissionDeniedError),
        ("error-404", openai.NotFoundError),
        ("error-422", openai.UnprocessableEntityError),
        ("error-429", openai.RateLimitError),
        ("error-500", openai.InternalServerError),
        ("error-503", openai.InternalServerError),
    ],
)
def test_error_models__status__is_the_sdks_error(
    client: OpenAI, model: str, error: type[openai.APIStatusError]
) -> None:
    with pytest.raises(error) as caught:
        client.chat.completions.create(model=model, messages=HELLO)

    assert caught.value.status_code == int(model.removeprefix("error-"))
    assert caught.value.response.headers.get("retry-after") == ("1" if model == "error-429" else None)


def test_flaky__same_request_again__is_answered(client: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="flaky", messages=HELLO)

    answer = client.chat.completions.create(model="flaky", messages=HELLO)

    assert answer.choices[0].finish_reason == "stop"


def test_half__many_requests__half_fail_and_fail_again(client: OpenAI) -> None:
    def fails(number: int) -> bool:
        try:
            client.chat.completions.create(model="half", messages=[{"role": "user", "content": f"number {number}"}])
        except openai.InternalServerError:
            return True
        return False

    first, again = [fails(number) for number in range(40)], [fails(number) for number in range(40)]

    assert again == first
    assert 10 <= sum(first) <= 30


def test_error_mid_stream__after_two_chunks__is_an_error_event(client: OpenAI) -> None:
    received = []
    with pytest.raises(openai.APIError, match="had an error"):
        for chunk in client.chat.completions.create(model="error-mid-stream", messages=HELLO, stream=True):
            received.append(chunk.choices[0].delta.content or "")

    assert "".join(received) == "Hello there"


@pytest.mark.parametrize("prompt", ["Hello", "", "Hello there", "x " * 50])
def test_mid_stream_models__any_prompt__never_a_whole_answer(client: OpenAI, prompt: str) -> None:
    messages: Any = [{"role": "user", "content": prompt}]
    for model, error in (("error-mid-stream", "had an error"), ("cut-mid-stream", r"(?i)peer closed|connection")):
        received: list[Any] = []
        with pytest.raises(Exception, match=error):
            received.extend(client.chat.completions.create(model=model, messages=messages, stream=True))
        assert not any(choice.finish_reason for chunk in received for choice in chunk.choices)

    with pytest.raises((openai.APITimeoutError, httpx.ReadTimeout)):
        list(
            client.with_options(timeout=0.3, max_retries=0).chat.completions.create(
                model="hang-mid-stream", messages=messages, stream=True
            )
        )


def test_cut_mid_stream__connection__drops(client: OpenAI) -> None:
    stream = client.chat.completions.create(model="cut-mid-stream", messages=HELLO, stream=True)

    # The SDK lets its HTTP client's own error through once the stream has begun.
    with pytest.raises(Exception, match=r"(?i)peer closed|connection"):
        list(stream)


def test_hang__no_answer__client_times_out(client: OpenAI) -> None:
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.3).chat.completions.create(model="hang", messages=HELLO)


def test_hang_half__many_requests__answered_or_not_by_their_bytes(client: OpenAI) -> None:
    url = f"{client.base_url}chat/completions"
    conversations = [[{"role": "user", "content": f"number {number}"}] for number in range(8)]
    bodies = [json.dumps({"model": "hang-half", "messages": messages}).encode() for messages in conversations]
    hanging = [body for body in bodies if hashlib.sha256(body).digest()[0] % 2]

    for body in bodies:
        if body in hanging:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(url, content=body, timeout=0.3)
        else:
            assert httpx.post(url, content=body, timeout=TIMEOUT_SECONDS).status_code == 200
    assert 0 < len(hanging) < len(bodies)


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages": []}', b'{"messages": "x"}', b'{"messages": [1]}'])
def test_malformed__body__is_a_400(sandbox_url: str, body: bytes) -> None:
    response = requests.post(f"{sandbox_url}/chat/completions", data=body, timeout=TIMEOUT_SECONDS)

    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("model", ["no-such-model-xyz", "lorem", "sandbox/lorem", ""])
def test_model__that_the_sandbox_does_not_have__is_404_and_named(client: OpenAI, model: str) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model=model, messages=HELLO)

    assert refused.value.code == "model_not_found"
    assert repr(model.removeprefix("sandbox/")) in str(refused.value)


def test_models__of_the_documents_table__are_those_of_the_sandbox() -> None:
    page = (settings.BASE_DIR / "docs" / "sandbox-models.md").read_text(encoding="utf-8")
    table = page.partition("## Models\n")[2]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]

    assert sorted(name for row in rows for name in re.findall("`([^`]+)`", row)) == sorted(BEHAVIOURS)
