"""Compactions of the Responses API: asked for, sealed, opened again, and made by Claude itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.responses.surface import SURFACE

Json = dict[str, Any]
SUMMARY = "The parcel A0 waits at depot Nord."
USER: Json = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where is my parcel?"}]}
TRIGGER: Json = {"type": "compaction_trigger"}
TOOL: Json = {"type": "function", "name": "find_parcel", "parameters": {"type": "object"}}


def read(*items: Json, **fields: Any) -> SurfaceRequest:
    return SURFACE.read(json.dumps({"model": "qwen3", "input": [*items], **fields}).encode())


def chat(request: SurfaceRequest) -> Json:
    made: Json = json.loads(request.body)
    return made


def output(request: SurfaceRequest, **message: Any) -> list[Json]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    completion = {"id": "chatcmpl-1", "created": 1790000000, "model": "qwen3", "choices": [choice]}
    answer = json.loads(SURFACE.answer(request, json.dumps(completion).encode(), "r1"))
    items: list[Json] = answer["output"]
    return items


def streamed(request: SurfaceRequest, *deltas: Json) -> list[Json]:
    """Returns the data of the events."""
    encoder = SURFACE.stream(request, "r1")
    chunks = [
        json.dumps({"id": "c", "created": 1790000000, "model": "qwen3", "choices": [{"index": 0, "delta": delta}]})
        for delta in deltas
    ]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    frames = encoder.feed([chunk.encode() for chunk in chunks]) + encoder.close([json.dumps(last).encode()])
    return [json.loads(line[6:]) for line in frames.decode().splitlines() if line.startswith("data: ")]


def test_trigger__any_model__is_asked_for_a_summary_without_calls() -> None:
    asked = chat(read(USER, TRIGGER, tools=[TOOL], tool_choice="auto"))

    assert [message["role"] for message in asked["messages"]] == ["user", "user"]
    assert "summary that will replace this conversation" in asked["messages"][-1]["content"]
    assert asked["tool_choice"] == "none"
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["find_parcel"]


def test_summary__sealed_and_sent_back__stands_for_the_conversation() -> None:
    (item,) = output(read(USER, TRIGGER), content=SUMMARY)

    assert item["type"] == "compaction"
    assert SUMMARY not in json.dumps(item)
    opened = chat(read(item, USER))["messages"]
    assert [message["role"] for message in opened] == ["user", "user"]
    assert SUMMARY in opened[0]["content"]


def test_summary__streamed__is_the_one_item_of_the_answer() -> None:
    events = streamed(read(USER, TRIGGER), {"content": SUMMARY[:9]}, {"content": SUMMARY[9:]})

    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
    ]
    (item,) = events[-1]["response"]["output"]
    assert item == events[-2]["item"]
    assert SUMMARY in chat(read(item, USER))["messages"][0]["content"]


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ({"content": None, "reasoning_content": "It waits at Nord."}, "It waits at Nord."),
        ({"content": " "}, "Where is my parcel?"),
    ],
)
def test_summary__that_the_model_did_not_write__loses_nothing(message: Json, kept: str) -> None:
    (item,) = output(read(USER, TRIGGER), **message)

    assert kept in chat(read(item, USER))["messages"][0]["content"]


def test_compaction__sealed_here__reaches_openai_as_a_message() -> None:
    (item,) = output(read(USER, TRIGGER), content=SUMMARY)

    forwarded = json.loads(SURFACE.forwarded(json.dumps({"model": "gpt-5.5", "input": [item, USER]}).encode()))

    assert forwarded["input"][1] == USER
    assert forwarded["input"][0]["role"] == "user"
    assert SUMMARY in forwarded["input"][0]["content"]


def test_compaction__of_another_vendor__is_named_and_forwarded_as_it_came() -> None:
    foreign = {"type": "compaction", "encrypted_content": "b3RoZXI="}
    body = json.dumps({"model": "gpt-5.5", "input": [foreign, USER]}).encode()

    assert SURFACE.forwarded(body) == body
    request = SURFACE.read(body)
    assert len(chat(request)["messages"]) == 1
    assert any("compaction" in warning for warning in request.warnings)


def test_compaction__that_claude_made__is_an_item_whole_and_streamed() -> None:
    specific = {"content": [{"type": "compaction", "content": SUMMARY}, {"type": "text", "text": "It is."}]}
    request = read(USER)

    whole = output(request, content="It is.", provider_specific_fields=specific)
    events = streamed(request, {"provider_specific_fields": specific}, {"content": "It is."})

    assert [item["type"] for item in whole] == ["compaction", "message"]
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["compaction", "message"]
    for items in (whole, events[-1]["response"]["output"]):
        assert SUMMARY in chat(read(items[0], USER))["messages"][0]["content"]
