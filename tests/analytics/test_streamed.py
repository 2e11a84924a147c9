"""The shipper assembles the answers of streams."""

from __future__ import annotations

from typing import Any

import msgspec

from analytics.shipper.streamed import assembled
from tests.tables.cases import tabled


def _event(**fields: Any) -> bytes:
    return (
        b"data: "
        + msgspec.json.encode({"id": "c1", "model": "m", "object": "chat.completion.chunk", **fields})
        + b"\n\n"
    )


def _delta(delta: dict[str, Any], finish_reason: str | None = None, index: int = 0) -> list[dict[str, Any]]:
    return [{"index": index, "delta": delta, "finish_reason": finish_reason}]


def test_assembled__text_in_pieces__one_message_with_usage() -> None:
    stream = b"".join(
        [
            _event(choices=_delta({"role": "assistant", "content": ""}), usage=None),
            _event(choices=_delta({"content": "Grüße, "})),
            b": keep-alive\n\n",
            _event(choices=_delta({"content": "Welt"})),
            _event(choices=_delta({}, "stop"), usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
        ]
    )

    whole = msgspec.json.decode(assembled(stream))

    assert whole == {
        "id": "c1",
        "model": "m",
        "object": "chat.completion",
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Grüße, Welt"}, "finish_reason": "stop"},
        ],
    }


def test_assembled__parallel_tool_calls__arguments_joined_by_index() -> None:
    first = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    second = {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}
    stream = b"".join(
        [
            _event(choices=_delta({"tool_calls": [first, second]})),
            _event(choices=_delta({"tool_calls": [{"index": 1, "function": {"arguments": '{"y":'}}]})),
            _event(choices=_delta({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})),
            _event(choices=_delta({"tool_calls": [{"index": 1, "id": "b", "function": {"arguments": "1}"}}]})),
            _event(choices=_delta({}, "tool_calls")),
        ]
    )

    calls = msgspec.json.decode(assembled(stream))["choices"][0]["message"]["tool_calls"]

    assert [(call["id"], call["function"]) for call in calls] == [
        ("a", {"name": "f", "arguments": "{}"}),
        ("b", {"name": "g", "arguments": '{"y":1}'}),
    ]


def test_assembled__several_choices_and_a_cut__what_there_was() -> None:
    stream = (
        _event(choices=_delta({"content": "one"}, index=1))
        + _event(choices=_delta({"content": "zero"}))
        + b'data: {"id'
    )

    choices = msgspec.json.decode(assembled(stream))["choices"]

    assert [choice["message"]["content"] for choice in choices] == ["zero", "one"]


def test_assembled__no_events__empty() -> None:
    assert assembled(b"") == b""
    assert assembled(b"not a stream") == b""


@tabled
def test_assembled__odd_shapes__never_raises(event: bytes) -> None:
    assert b"chat.completion" in assembled(b"data: " + event + b"\n\n")
