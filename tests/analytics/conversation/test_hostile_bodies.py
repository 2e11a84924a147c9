"""No body fails to be read, and no text of one is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.conversation.turns import Turn, inline_images
from tests.night import examples
from tests.tables.cases import tabled

_TEXTS = st.text(max_size=8)
_NAMES = st.sampled_from([
    "role", "content", "type", "text", "messages", "input", "prompt", "choices", "message", "delta", "tool_calls",
    "function", "arguments", "name", "id", "image_url", "url", "source", "data", "thinking", "summary", "output",
    "reasoning", "tool_use_id", "system", "instructions", "documents", "b64_json", "embedding", "refusal", "tools",
])  # fmt: skip
_KINDS = st.sampled_from([
    "text", "image_url", "image", "tool_use", "tool_result", "thinking", "reasoning", "function_call", "message",
    "function_call_output", "document", "refusal", "input_image", "tool", "data:image/png;base64,iVBORw0K",
])  # fmt: skip
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | _KINDS
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES | _TEXTS, inner, max_size=5),
    max_leaves=25,
)


def check(turns: tuple[Turn, ...]) -> None:
    for turn in turns:
        for part in turn.parts:
            f"{turn.role}{part.text}{part.name}{part.call_id}{part.url}{part.media_type}".encode()
    list(inline_images(turns))


@settings(max_examples=examples(75, 300), deadline=None)
@given(st.dictionaries(_NAMES, _VALUES, max_size=6) | _VALUES)
def test_bodies__any_json__turns_that_can_be_encoded(body: Any) -> None:
    text = json.dumps(body)

    check(read_request(text).turns)
    check(read_response(text))


@settings(max_examples=examples(25, 100), deadline=None)
@given(st.text(max_size=60))
def test_bodies__any_text__turns(text: str) -> None:
    check(read_request(text).turns)
    check(read_response(text))


@settings(max_examples=examples(25, 100), deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=6), st.integers(0, 9), max_size=4))
def test_part__of_unknown_type__kept_as_json(part: dict[str, int]) -> None:
    body = {"messages": [{"role": "user", "content": [{**part, "type": "hologram"}]}]}

    [turn] = read_request(json.dumps(body)).turns

    assert json.loads(turn.parts[0].text) == {**part, "type": "hologram"}
    assert turn.parts[0].name == "hologram"


@pytest.mark.parametrize("depth", [100, 900, 5_000, 100_000])
@tabled
def test_bodies__nested_deeply__one_turn_or_raw(opening: str, closing: str, depth: int) -> None:
    step = '{"type":"tool_result","content":['
    body = opening + step * depth + "]}" * depth + closing

    assert len(read_request(body).turns) == 1
    assert len(read_response(f'{{"choices":[{{"message":{{"content":[{step * depth}{"]}" * depth}]}}}}]}}')) == 1


@pytest.mark.parametrize(
    "text", ['{"messages": [{"role": "\\ud800", "content": "\\udfff"}]}', '{"input": NaN}', "1e999"]
)
def test_bodies__half_surrogates_and_odd_numbers__turns(text: str) -> None:
    check(read_request(text).turns)
    check(read_response(text))
