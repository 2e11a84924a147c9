"""Stored bodies of every operation become turns of one form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analytics.conversation.images import decode_image, sniff_part
from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.conversation.turns import Part, PartKind, Turn, inline_images

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def shown(turns: tuple[Turn, ...]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Returns role, and kind and text of each part."""
    return [(turn.role, [(str(part.kind), part.text) for part in turn.parts]) for turn in turns]


def request(body: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    return shown(read_request(json.dumps(body)).turns)


def response(body: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    return shown(read_response(json.dumps(body)))


def test_chat__tools_and_results__calls_with_arguments() -> None:
    body = {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Oslo?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "w", "arguments": '{"q":"Oslo"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "4 degrees"},
        ]
    }

    assert request(body) == [
        ("system", [("text", "Be brief.")]),
        ("user", [("text", "Weather in Oslo?")]),
        ("assistant", [("tool_call", '{"q":"Oslo"}')]),
        ("tool", [("tool_result", "4 degrees")]),
    ]
    called = read_request(json.dumps(body)).turns[2].parts[0]
    assert (called.name, called.call_id) == ("w", "c1")


def test_messages__blocks__same_form_as_chat() -> None:
    body = {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "tool_use", "id": "t1", "name": "w", "input": {"q": "Oslo"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [
                    {"type": "text", "text": "no"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ]},
            ]},
        ],
    }  # fmt: skip

    assert request(body) == [
        ("system", [("text", "Be brief.")]),
        ("assistant", [("thinking", "Hm."), ("tool_call", '{"q":"Oslo"}')]),
        ("user", [("tool_result", "no"), ("image", "")]),
    ]
    assert read_request(json.dumps(body)).turns[2].parts[0].is_error


def test_responses__items__what_the_model_made_in_a_row_is_one_turn() -> None:
    body = {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "c", "name": "w", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "4"},
            {"type": "web_search_call", "id": "s", "action": {"query": "oslo"}},
        ],
        "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "temperature": 0.5,
    }

    turns = request(body)

    assert [role for role, _ in turns] == ["system", "user", "assistant", "tool", "assistant"]
    assert turns[2][1] == [("thinking", "Hm."), ("tool_call", "{}")]
    assert turns[3][1] == [("tool_result", "4")]
    assert turns[4][1][0][0] == "raw"
    read = read_request(json.dumps(body))
    assert json.loads(read.schema)["format"]["type"] == "json_schema"
    assert read.parameters == (("temperature", "0.5"),)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"prompt": "Once"}, [("user", [("text", "Once")])]),
        ({"prompt": ["a", "b"]}, [("user", [("text", "a"), ("text", "b")])]),
        ({"input": ["a", "b"], "model": "e"}, [("user", [("text", "a"), ("text", "b")])]),
        ({"input": [1, 2]}, [("user", [("raw", "[1,2]")])]),
        (
            {"query": "q", "documents": ["d", {"text": "e"}]},
            [("user", [("text", "q")]), ("documents", [("text", "d"), ("text", "e")])],
        ),
        ([1], [("unknown", [("raw", "[1]")])]),
        ({"messages": [{"content": "x", "mood": "odd"}]}, [("unknown", [("text", "x"), ("field", '"odd"')])]),
    ],
)
def test_request__other_operations_and_odd_ones__turns(body: Any, expected: Any) -> None:
    assert request(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]},
            [("assistant", [("text", "Hi")])],
        ),
        ({"choices": [{"text": "on a time"}]}, [("assistant", [("text", "on a time")])]),
        ({"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}, [("assistant", [("text", "Hi")])]),
        ({"data": [{"embedding": [0.1, 0.2]}]}, [("assistant", [("raw", "2 numbers")])]),
        ({"data": [{"b64_json": PNG}]}, [("assistant", [("image", "")])]),
        ({"text": "spoken"}, [("assistant", [("text", "spoken")])]),
        ({"results": [1]}, [("assistant", [("raw", '{"results":[1]}')])]),
        ({"choices": [{"message": {"refusal": "No."}}]}, [("assistant", [("refusal", "No.")])]),
    ],
)
def test_response__each_operation__turns(body: Any, expected: Any) -> None:
    assert response(body) == expected


def test_tools__offered__names_and_json() -> None:
    read = read_request('{"messages": [], "tools": [{"type": "function", "function": {"name": "w"}}, {"name": "v"}]}')

    assert [tool.name for tool in read.tools] == ["w", "v"]


def test_images__inline_and_remote__numbered_apart_and_sniffed() -> None:
    images = [f"data:image/svg+xml;base64,{PNG}", "https://example.com/a.png"]
    content = [{"type": "image_url", "image_url": {"url": url}} for url in images]
    turns = read_request(json.dumps({"messages": [{"role": "user", "content": content}]})).turns

    [inline] = inline_images(turns)

    assert sniff_part(inline) == "image/png"
    image = decode_image(inline)
    assert image is not None
    assert image.media_type == "image/png"
    assert turns[0].parts[1].url == "https://example.com/a.png"


@pytest.mark.parametrize("data", ["PHN2Zz48L3N2Zz4=", "!", "", "PGh0bWw+"])
def test_image__no_format_that_browsers_share__none(data: str) -> None:
    assert decode_image(Part(PartKind.IMAGE, media_type="image/png", data=data)) is None
