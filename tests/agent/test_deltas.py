from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from agent.turn.deltas import Frames, PartialAnswer, read_arguments
from tests.tables.cases import tabled


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}


def piece(index: Any, name: str | None = None, arguments: str | None = None, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return chunk({"tool_calls": [{"index": index, "function": function, **more}]})


def joined(*chunks: dict[str, Any]) -> PartialAnswer:
    whole = PartialAnswer()
    for one in chunks:
        whole.add(one)
    return whole


def test_deltas__texts__are_given_as_they_come_and_joined() -> None:
    whole = PartialAnswer()

    assert [whole.add(chunk({"role": "assistant", "content": text})) for text in ("So ", "", "be it")] == [
        "So ", "", "be it",
    ]  # fmt: skip
    assert whole.text == "So be it"


def test_deltas__refusal__is_text_too() -> None:
    assert joined(chunk({"refusal": "I may not."})).text == "I may not."


def test_deltas__calls_in_pieces__are_joined_in_their_order() -> None:
    whole = joined(
        piece(1, "b", "", id="2", type="function"),
        piece(0, "a", '{"x"', id="1", extra_content={"google": {"thought_signature": "s"}}),
        piece(0, None, ": 1}"),
        piece(1, None, "{}"),
    )

    assert whole.calls == [
        {
            "id": "1",
            "type": "function",
            "function": {"name": "a", "arguments": '{"x": 1}'},
            "extra_content": {"google": {"thought_signature": "s"}},
        },
        {"id": "2", "type": "function", "function": {"name": "b", "arguments": "{}"}},
    ]


@pytest.mark.parametrize(
    "ids", [("", ""), ("x", "x"), (None, None), (5, 5), ("\x00", "\ufffd"), ("é", "é" * 2), ("x" * 201, "x" * 202)]
)
def test_deltas__ids_missing_or_double__are_given(ids: tuple[Any, Any]) -> None:
    calls = joined(piece(0, "a", "{}", id=ids[0]), piece(1, "b", "{}", id=ids[1])).calls

    assert len({call["id"] for call in calls}) == 2
    assert all(isinstance(call["id"], str) and call["id"] for call in calls)
    assert all(call["id"].isascii() and call["id"].isprintable() and len(call["id"]) <= 200 for call in calls)


def test_deltas__signed_reasoning_in_pieces__is_joined_by_block() -> None:
    part = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    whole = joined(
        chunk({"reasoning_content": "It is ", "reasoning_details": [{**part, "text": "It is "}]}),
        chunk({"reasoning_content": "so.", "reasoning_details": [{**part, "text": "so."}]}),
        chunk({"reasoning_details": [{**part, "text": "", "signature": "signed"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 1}]}),
    )

    assert whole.reasoning == {
        "reasoning_content": "It is so.",
        "reasoning_details": [
            {**part, "text": "It is so.", "signature": "signed"},
            {"type": "reasoning.encrypted", "data": "x", "index": 1},
        ],
    }


def test_deltas__usage__is_the_last_one() -> None:
    assert joined(chunk({}, usage={"total_tokens": 5}), chunk({}, usage=None)).total_tokens == 5


def test_deltas__size__counts_texts_and_calls() -> None:
    texts = joined(chunk({"content": "1234", "reasoning_content": "12"})).size
    assert texts == 6
    one = joined(piece(0, "abc", "{}")).size
    assert joined(piece(0, "abc", "{}"), piece(0, None, "[]")).size == one + 2


@tabled
def test_deltas__size__counts_parts_without_text(delta: dict[str, Any]) -> None:
    assert joined(chunk(delta)).size >= 300


_names = st.sampled_from(
    ["choices", "delta", "index", "content", "tool_calls", "function", "usage", "reasoning_details"]
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage"]), _json, max_size=2), max_size=4))
def test_deltas__whatever_a_provider_sends__never_fails(chunks: list[dict[str, Any]]) -> None:
    whole = joined(*chunks)

    json.dumps(whole.calls)
    json.dumps(whole.reasoning)


@given(st.lists(st.text(max_size=8), max_size=8), st.data())
def test_frames__however_they_are_cut__are_the_same(texts: list[str], data: st.DataObject) -> None:
    stream = b"".join(
        [b": keep-alive\n\n", *(b"data: " + json.dumps(chunk({"content": text})).encode() + b"\n\n" for text in texts)]
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    frames, whole = Frames(), PartialAnswer()
    assert "".join(whole.add(found) for part in pieces for found in frames.feed(part)) == "".join(texts)


def test_frames__what_cannot_be_read__is_passed_over() -> None:
    stream = b'data: {"a"\n\ndata: {"usage": {"total_tokens": 3}}\n\ndata: [DONE]\n\n'

    assert list(Frames().feed(stream)) == [{"usage": {"total_tokens": 3}}]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ("[]", None),
        ("{", None),
        ("[" * 9999, None),
        ('{"a": NaN}', None),
        ('{"a": 1e999}', None),
        ('{"a": "\\ud800"}', None),
        ('{"a":' * 99 + "1" + "}" * 99, None),
        ('{"a": ' + "1" * 5000 + "}", None),
    ],
)
def test_arguments__that_are_no_object__are_none(arguments: str, found: Any) -> None:
    assert read_arguments({"function": {"arguments": arguments}}) == found
