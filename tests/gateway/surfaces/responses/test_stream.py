"""Streamed responses, as OpenAI's SDK reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response

from core.errors import ServiceUnavailableError
from gateway.surfaces.responses.surface import SURFACE
from tests.gateway.surfaces.responses.chunks import (
    REQUEST_ID,
    USAGE,
    chunk,
    completion,
    events_of,
    last_chunk,
    read_by_the_sdk,
    request,
)

CALL = {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": '{"x'}}
ROLE = chunk({"role": "assistant", "content": ""})
TEXTS = [ROLE, chunk({"content": "Hel"}), chunk({"content": "lo"})]


def streamed(chunks: list[bytes], last: list[bytes], **fields: Any) -> list[dict[str, Any]]:
    stream = SURFACE.stream(request(**fields), REQUEST_ID)
    return events_of(stream.feed(chunks) + stream.close(last))


def test_text__streamed__has_the_vendors_events_in_order() -> None:
    events = streamed(TEXTS, [last_chunk()])

    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    final = read_by_the_sdk(events)
    assert final.output_text == "Hello"
    assert final.usage is not None
    assert (final.usage.input_tokens, final.usage.output_tokens) == (USAGE["prompt_tokens"], USAGE["completion_tokens"])
    assert final.usage.input_tokens_details.cached_tokens == 3


def test_calls__interleaved__are_one_item_each() -> None:
    def piece(index: int, **fields: Any) -> bytes:
        return chunk({"tool_calls": [{"index": index, **fields}]})

    events = streamed(
        [
            ROLE,
            piece(0, id="call_a", type="function", function={"name": "f", "arguments": ""}),
            piece(1, id="call_b", type="function", function={"name": "g", "arguments": '{"x"'}),
            piece(0, function={"arguments": '{"y":1}'}),
            piece(1, function={"arguments": ":2}"}),
        ],
        [last_chunk("tool_calls")],
    )

    final = read_by_the_sdk(events)
    assert [(item.name, item.call_id, item.arguments) for item in final.output if item.type == "function_call"] == [
        ("f", "call_a", '{"y":1}'),
        ("g", "call_b", '{"x":2}'),
    ]
    assert len(final.output) == 2


def test_reasoning_with_its_details__included__comes_back_as_it_was() -> None:
    details = [
        {"type": "reasoning.text", "text": "Hm", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}
    ]
    events = streamed(
        [ROLE, chunk({"reasoning_content": "Hm"}), chunk({"reasoning_details": details}), chunk({"content": "Yes"})],
        [last_chunk()],
        include=["reasoning.encrypted_content"],
    )

    final = read_by_the_sdk(events)
    reasoning = final.output[0]
    assert reasoning.type == "reasoning"
    assert [part.text for part in reasoning.summary] == ["Hm"]
    again = SURFACE.read(
        json.dumps(
            {"model": "m", "input": [{"role": "user", "content": "?"}, *(item.to_dict() for item in final.output)]}
        ).encode()
    )
    assert json.loads(again.body)["messages"][1] == {
        "role": "assistant",
        "reasoning_content": "Hm",
        "reasoning_details": details,
        "content": "Yes",
    }


@pytest.mark.parametrize(
    ("finish_reason", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_stream__cut_off__is_incomplete(finish_reason: str, reason: str) -> None:
    item, final = streamed([chunk({"reasoning_content": "Hm"}), *TEXTS], [last_chunk(finish_reason)])[-2:]

    assert final["type"] == "response.incomplete"
    assert final["response"]["incomplete_details"] == {"reason": reason}
    assert [one["status"] for one in final["response"]["output"]] == ["completed", "incomplete"]
    assert (item["type"], item["item"]["status"]) == ("response.output_item.done", "incomplete")


@pytest.mark.parametrize("message", [{"content": "Once upon"}, {"content": None, "tool_calls": [CALL]}])
def test_whole__cut_off__its_last_item_is_incomplete(message: dict[str, Any]) -> None:
    whole = completion({"reasoning_content": "Hm", **message}, "length")

    answer = json.loads(SURFACE.answer(request(), whole, REQUEST_ID))

    assert answer["status"] == "incomplete"
    assert [item["status"] for item in answer["output"]] == ["completed", "incomplete"]


def test_stream__fails_after_output__ends_with_the_failed_response() -> None:
    stream = SURFACE.stream(request(), REQUEST_ID)

    events = events_of(stream.feed(TEXTS) + stream.fail(ServiceUnavailableError("The provider went away")))

    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"] == {"code": "service_unavailable", "message": "The provider went away"}
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello"


@given(st.lists(st.integers(0, 5), max_size=6))
def test_stream__cut_anywhere__has_the_same_bytes(cuts: list[int]) -> None:
    chunks = [*TEXTS, chunk({"reasoning_content": "so"}), chunk({"content": "!"})]
    whole = SURFACE.stream(request(), REQUEST_ID)
    pieces = SURFACE.stream(request(), REQUEST_ID)
    out, start = b"", 0
    for cut in sorted(cuts):
        out += pieces.feed(chunks[start:cut])
        start = max(start, cut)
    out += pieces.feed(chunks[start:])

    assert out + pieces.close([last_chunk()]) == whole.feed(chunks) + whole.close([last_chunk()])


@pytest.mark.parametrize(
    ("message", "chunks"),
    [
        ({"content": "Hello"}, TEXTS),
        ({"content": None, "refusal": "No."}, [ROLE, chunk({"refusal": "N"}), chunk({"refusal": "o."})]),
        (
            {
                "content": "A",
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1},
                    }
                ],
            },
            [
                chunk({"content": "A"}),
                chunk(
                    {
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url_citation": {
                                    "url": "https://a.example",
                                    "title": "A",
                                    "start_index": 0,
                                    "end_index": 1,
                                },
                            }
                        ]
                    }
                ),
            ],
        ),
    ],
)
def test_streamed_answer__is_the_whole_answer(message: dict[str, Any], chunks: list[bytes]) -> None:
    final = streamed(chunks, [last_chunk()])[-1]["response"]

    whole = json.loads(SURFACE.answer(request(), completion(message), REQUEST_ID))
    assert final == whole
    Response.model_validate(whole, strict=True)
