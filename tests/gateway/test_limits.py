"""Every size limit of a request: a value at the limit or below passes, one above is refused with the field's name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.service import Gateway
from tests.gateway.wire import assert_error, assert_request_id, body

MEGABYTE = 1_048_576


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def text(size: int) -> dict[str, Any]:
    return {"type": "text", "text": "x" * size}


def image(size: int) -> dict[str, Any]:
    """Returns an image part whose data URL has so many bytes."""
    url = "data:image/png;base64,"
    return {"type": "image_url", "image_url": {"url": url + "A" * (size - len(url)), "detail": "low"}}


FILES: dict[str, dict[str, Any]] = {
    "image": image(5 * MEGABYTE),
    "document": {"type": "document_url", "document_url": {"url": "data:application/pdf;base64," + "A" * 5 * MEGABYTE}},
    "audio": {"type": "input_audio", "input_audio": {"data": "A" * 5 * MEGABYTE, "format": "wav"}},
    "file": {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + "A" * MEGABYTE},
    },
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "1 message": {"messages": [user("x")]},
    "999 messages": {"messages": [user("x")] * 999},
    "1000 messages": {"messages": [user("x")] * 1000},
    "1 MB less a byte": {"messages": [user("x" * (MEGABYTE - 1))]},
    "1 MB": {"messages": [user("x" * MEGABYTE)]},
    "1 MB of two-byte characters": {"messages": [user("é" * (MEGABYTE // 2))]},
    "two messages of 1 MB": {"messages": [user("x" * MEGABYTE)] * 2},
    **{
        f"1 MB of text and a file as {kind}": {"messages": [user([text(MEGABYTE - 200), part])]}
        for kind, part in FILES.items()
    },
    "an image of 24 MB": {"messages": [user([image(24 * MEGABYTE)])]},
    "max_tokens 1": {"max_tokens": 1},
    "max_tokens 999,999": {"max_tokens": 999_999},
    "max_tokens 1,000,000": {"max_tokens": 1_000_000},
    "n 1": {"n": 1},
    "n 9": {"n": 9},
    "n 10": {"n": 10},
    "temperature 0": {"temperature": 0},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 2": {"temperature": 2},
    "temperature 2.0": {"temperature": 2.0},
    "top_p 0": {"top_p": 0},
    "top_p 0.3": {"top_p": 0.3},
    "top_p 1": {"top_p": 1.0},
    "frequency_penalty -2": {"frequency_penalty": -2},
    "frequency_penalty 0": {"frequency_penalty": 0.0},
    "frequency_penalty 2": {"frequency_penalty": 2.0},
    "presence_penalty -2": {"presence_penalty": -2.0},
    "presence_penalty 2": {"presence_penalty": 2},
    "model of 512 characters": {"model": "openai/" + "m" * 505},
    "no fallback model": {"models": []},
    "4 fallback models": {"models": ["openai/gpt-4o"] * 4},
    "5 fallback models": {"models": ["openai/gpt-4o"] * 5},
    "every optional field null": dict.fromkeys(
        ("temperature", "max_tokens", "top_p", "n", "stream", "stop", "frequency_penalty", "presence_penalty", "user",
         "seed", "tools", "tool_choice", "response_format", "thinking", "reasoning_effort", "models", "provider")
    ),
}  # fmt: skip

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "1001 messages": ({"messages": [user("x")] * 1001}, "too_many_messages", "messages"),
    "no message": ({"messages": []}, "empty_messages", "messages"),
    "1 MB and a byte": ({"messages": [user("x" * (MEGABYTE + 1))]}, "message_too_large", "messages[0]"),
    "1 MB and a two-byte character": (
        {"messages": [user("x"), user("é" * (MEGABYTE // 2 + 1))]},
        "message_too_large",
        "messages[1]",
    ),
    "1 MB in a part": (
        {"messages": [user([{"type": "text", "text": "x" * MEGABYTE}])]},
        "message_too_large",
        "messages[0]",
    ),
    "1 MB of text beside an image": (
        {"messages": [user([image(2 * MEGABYTE), {"type": "text", "text": "x" * MEGABYTE}])]},
        "message_too_large",
        "messages[0].content",
    ),
    "an image of 24 MB and a byte": (
        {"messages": [user("x"), user([{"type": "text", "text": "x"}, image(24 * MEGABYTE + 1)])]},
        "message_too_large",
        "messages[1].content[1].image_url.url: an inline file of 25165825 bytes, at most 25165824 are allowed",
    ),
    "1 MB of address that is no file": (
        {"messages": [user([{"type": "image_url", "image_url": {"url": "https://x.example/" + "a" * MEGABYTE}}])]},
        "message_too_large",
        "messages[0]",
    ),
    "max_tokens 1,000,001": ({"max_tokens": 1_000_001}, "invalid_value", "max_tokens"),
    "max_tokens 0": ({"max_tokens": 0}, "invalid_value", "max_tokens"),
    "max_tokens -1": ({"max_tokens": -1}, "invalid_value", "max_tokens"),
    "max_tokens 2**70": ({"max_tokens": 2**70}, "invalid_value", "max_tokens"),
    "n 11": ({"n": 11}, "invalid_value", "n"),
    "n 0": ({"n": 0}, "invalid_value", "n"),
    "temperature 2.01": ({"temperature": 2.01}, "invalid_value", "temperature"),
    "temperature -0.01": ({"temperature": -0.01}, "invalid_value", "temperature"),
    "top_p 1.001": ({"top_p": 1.001}, "invalid_value", "top_p"),
    "top_p -0.1": ({"top_p": -0.1}, "invalid_value", "top_p"),
    "frequency_penalty -2.1": ({"frequency_penalty": -2.1}, "invalid_value", "frequency_penalty"),
    "frequency_penalty 2.1": ({"frequency_penalty": 2.1}, "invalid_value", "frequency_penalty"),
    "presence_penalty -3": ({"presence_penalty": -3}, "invalid_value", "presence_penalty"),
    "presence_penalty 2.0001": ({"presence_penalty": 2.0001}, "invalid_value", "presence_penalty"),
    "model of 513 characters": ({"model": "openai/" + "m" * 506}, "invalid_value", "model"),
    "fallback model of 513 characters": ({"models": ["openai/" + "m" * 506]}, "invalid_value", "models"),
    "6 fallback models": ({"models": ["openai/gpt-4o"] * 6}, "invalid_value", "models"),
}


@pytest.mark.parametrize("fields", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_limit__at_or_below__is_served(gateway: Gateway, fields: dict[str, Any]) -> None:
    response = gateway.post(body(**fields))

    assert response.status_code == 200, response.text[:300]
    assert_request_id(response)


@pytest.mark.parametrize(("fields", "code", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_limit__above__is_refused_by_name(gateway: Gateway, fields: dict[str, Any], code: str, field: str) -> None:
    before = len(gateway.upstream.received)

    response = gateway.post(body(**fields))

    assert_error(response, 400, code, type="invalid_request_error", naming=field)
    assert len(gateway.upstream.received) == before


@pytest.mark.parametrize("length", [0, 1, 254, 255])
def test_variable_header__at_most_255_characters__is_served(gateway: Gateway, length: int) -> None:
    response = gateway.post(body(), headers={"x-svc-var-user-name": "v" * length})

    assert response.status_code == 200, response.text


@pytest.mark.parametrize("length", [256, 4000])
def test_variable_header__longer__is_refused_by_name(gateway: Gateway, length: int) -> None:
    response = gateway.post(body(), headers={"x-svc-var-user-name": "v" * length})

    assert_error(response, 400, "invalid_value", naming="x-svc-var-user-name")


def test_variable_header__255_characters_of_several_bytes__is_served(gateway: Gateway) -> None:
    response = gateway.post(body(), headers={"x-svc-var-user-name": ("é" * 255).encode()})

    assert response.status_code == 200, response.text
