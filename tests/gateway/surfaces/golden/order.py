"""The order in which the events of each surface have to come, and what each of them has to repeat.

The rules hold for streams that the vendors themselves sent: `test_recordings.py` checks these too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anthropic.types import RawMessageStreamEvent
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.gateway.surfaces.gemini.clients import events_of as gemini_events
from tests.gateway.surfaces.golden.answers import chat_payloads
from tests.gateway.surfaces.messages.clients import events_of as messages_events
from tests.gateway.surfaces.responses.chunks import events_of as responses_events

_MESSAGES_EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
_RESPONSES_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
# The deltas that a block of each type may have; blocks of the vendor's own tools have those of calls or none.
_DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
}
_ENDS = {"response.completed", "response.incomplete", "response.failed"}
# The field of an event that ends a part or a call: it repeats all deltas before it.
_REPEATED = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}

Json = dict[str, Any]


def check_chat(frames: bytes) -> None:
    chunks = chat_payloads(frames)
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
    assert len({(chunk["id"], chunk["object"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    ended = [n for n, chunk in enumerate(chunks) for choice in chunk["choices"] if choice["finish_reason"]]
    assert ended == [len(chunks) - 1]
    assert [n for n, chunk in enumerate(chunks) if chunk.get("usage")] == ended


def check_completions(frames: bytes) -> None:
    chunks = chat_payloads(frames)
    for chunk in chunks:
        # The SDK's type knows whole completions alone: OpenAI's own chunks before the last one have null there.
        choices = [{**choice, "finish_reason": choice["finish_reason"] or "stop"} for choice in chunk["choices"]]
        Completion.model_validate({**chunk, "choices": choices})
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    ended = [n for n, chunk in enumerate(chunks) for choice in chunk["choices"] if choice["finish_reason"]]
    assert ended == [len(chunks) - 1]
    assert [n for n, chunk in enumerate(chunks) if chunk.get("usage")] == ended


def check_messages(frames: bytes) -> None:
    events = messages_events(frames)
    for event in events:
        if event["type"] not in ("ping", "error"):
            _MESSAGES_EVENT.validate_python(event)
    check_order_of_messages(events)


def check_order_of_messages(events: Sequence[Json]) -> None:
    first, *inner, ending, last = [event for event in events if event["type"] != "ping"]
    assert (first["type"], ending["type"], last["type"]) == ("message_start", "message_delta", "message_stop")
    assert (first["message"]["content"], first["message"]["stop_reason"]) == ([], None)
    assert ending["delta"]["stop_reason"]
    assert ending["usage"]["output_tokens"] >= 0
    number, block = 0, None
    for event in inner:
        assert event["index"] == number
        match event["type"]:
            case "content_block_start":
                assert block is None
                block = event["content_block"]["type"]
            case "content_block_delta":
                assert event["delta"]["type"] in _DELTAS.get(str(block), {"input_json_delta"})
            case "content_block_stop":
                assert block is not None
                number, block = number + 1, None
            case other:
                raise AssertionError(f"{other} inside of the answer")
    assert block is None


def check_responses(frames: bytes) -> None:
    events = responses_events(frames)
    for event in events:
        _RESPONSES_EVENT.validate_python(event)
    check_order_of_responses(events)


def check_order_of_responses(events: Sequence[Json]) -> None:
    created, started, *inner, last = events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert (created["type"], started["type"]) == ("response.created", "response.in_progress")
    assert created["response"]["output"] == started["response"]["output"] == []
    assert last["type"] in _ENDS
    assert last["type"] == f"response.{last['response']['status']}"
    items = _Items()
    for event in inner:
        items.take(event)
    output = last["response"]["output"]
    assert not items.open
    assert [item["id"] for item in output] == [item["id"] for item in items.done]
    for item, done in zip(output, items.done, strict=True):
        # OpenAI encrypts an item anew each time that it sends it.
        assert {**item, "encrypted_content": ""} == {**done, "encrypted_content": ""}


class _Items:
    """The items of a response while its events come. `_parts` are the parts of the open items, each as its place and
    the deltas of its text."""

    def __init__(self) -> None:
        self.open: dict[int, Json] = {}
        self.done: list[Json] = []
        self._count = 0
        self._parts: dict[tuple[Any, ...], list[str]] = {}
        self._ended: set[tuple[Any, ...]] = set()

    def take(self, event: Json) -> None:
        kind, index = event["type"], event["output_index"]
        if kind == "response.output_item.added":
            assert index == self._count
            self._count += 1
            self.open[index] = event["item"]
            return
        item = self.open[index]
        if kind == "response.output_item.done":
            del self.open[index]
            assert (event["item"]["id"], event["item"]["type"]) == (item["id"], item["type"])
            assert not [place for place in self._parts if place[0] == index]
            self.done.append(event["item"])
            return
        assert event["item_id"] == item["id"]
        self._inner(event, kind, self._place(event))

    def _inner(self, event: Json, kind: str, place: tuple[Any, ...]) -> None:
        base, _, step = kind.rpartition(".")
        if base in ("response.content_part", "response.reasoning_summary_part"):
            self._part(event, step, place)
        elif step == "delta":
            if len(place) == 2:
                self._parts.setdefault(place, [])
            assert place not in self._ended
            self._parts[place].append(event["delta"])
        elif step == "done" and base in _REPEATED:
            assert event[_REPEATED[base]] == "".join(self._parts.get(place, ()))
            self._ended.add(place)
            if len(place) == 2:
                self._parts.pop(place, None)

    def _part(self, event: Json, step: str, place: tuple[Any, ...]) -> None:
        if step == "added":
            assert place not in self._parts
            assert place not in self._ended
            # The parts of an item come one behind the other, and their numbers count up.
            assert not [other for other in self._parts if other[:2] == place[:2]]
            assert place[2] == len([other for other in self._ended if other[:2] == place[:2]])
            self._parts[place] = []
        else:
            assert place in self._ended
            text = event["part"].get("text", event["part"].get("refusal"))
            assert text == "".join(self._parts.pop(place))

    def _place(self, event: Json) -> tuple[Any, ...]:
        """Returns the item, the list in it and the number there; a call has one text and no list."""
        for name in ("summary_index", "content_index"):
            if name in event:
                return event["output_index"], name, event[name]
        return event["output_index"], ""


def check_gemini(frames: bytes) -> None:
    check_order_of_gemini([*gemini_events(frames)])


def check_order_of_gemini(events: Sequence[Json]) -> None:
    assert len({(event.get("modelVersion"), event.get("responseId")) for event in events}) == 1
    *inner, last = [event for event in events if event.get("candidates")]
    assert not [one for event in inner for one in event["candidates"] if one.get("finishReason")]
    assert all(one["finishReason"] for one in last["candidates"])
    assert last["usageMetadata"]["totalTokenCount"] >= last["usageMetadata"]["promptTokenCount"]
    for event in (*inner, last):
        for candidate in event["candidates"]:
            assert candidate.get("content", {}).get("role", "model") == "model"


CHECKS: Mapping[str, Callable[[bytes], None]] = {
    "chat": check_chat,
    "responses": check_responses,
    "messages": check_messages,
    "gemini": check_gemini,
    "completions": check_completions,
}
