from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.calls import is_json
from gateway.surfaces.checks import Json
from gateway.surfaces.responses.compaction import compaction_item
from gateway.surfaces.responses.response import (
    annotation,
    call_id_prefix,
    call_item,
    item_id,
    message_item,
    reasoning_item,
    text_part,
)
from gateway.surfaces.responses.tools import Origin

_encode = msgspec.json.Encoder().encode
_OPEN = "in_progress"


def fields_json(fields: Json) -> bytes:
    return _encode(fields)[1:-1]


_DELTA = b'event: %b\ndata: {"type":"%b","sequence_number":%d,%b,"delta":%b%b}\n\n'


class EventWriter:
    """Frames events, each with the next sequence number."""

    __slots__ = ("_frames", "_number")

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._number = 0

    def add(self, kind: str, fields: Json) -> None:
        data = _encode({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        self._frames.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), data))

    def add_delta(self, kind: bytes, place: bytes, text: str, rest: bytes = b"") -> None:
        """Adds the event that a stream has most of, whose `place` and other fields are JSON already."""
        self._frames.append(_DELTA % (kind, kind, self._number, place, _encode(text), rest))
        self._number += 1

    def taken(self) -> bytes:
        frames = b"".join(self._frames)
        self._frames.clear()
        return frames


class OpenItem(ABC):
    """An item of a response; `begin` and `close` write the events around it, and `status` is `in_progress` between
    them."""

    __slots__ = ("id", "index", "status")

    def __init__(self, prefix: str, request_id: str, index: int) -> None:
        self.id, self.index, self.status = item_id(prefix, request_id, index), index, _OPEN

    @property
    @abstractmethod
    def whole(self) -> Json:
        """Returns the item as far as it has come."""

    def begin(self, out: EventWriter) -> None:
        out.add("response.output_item.added", {"output_index": self.index, "item": self.whole})

    def close(self, out: EventWriter, status: str = "completed") -> None:
        """Writes the end of an item, once. `status` is `incomplete` for one that was cut off."""
        if self.status == _OPEN:
            self.status = status
            self._end(out)
            out.add("response.output_item.done", {"output_index": self.index, "item": self.whole})

    @abstractmethod
    def _end(self, out: EventWriter) -> None:
        """Writes the events that end the content of the item."""


class OpenReasoning(OpenItem):
    """The model's reasoning, of which clients see the text as a summary."""

    __slots__ = ("_details", "_place_json", "_request", "_texts")

    def __init__(self, request: SurfaceRequest, request_id: str, index: int) -> None:
        super().__init__("rs", request_id, index)
        self._request = request
        self._texts: list[str] = []
        self._details: list[dict[str, Any]] = []
        self._place_json = b""

    @property
    def whole(self) -> Json:
        return reasoning_item(self.id, "".join(self._texts), self._details, self._request, status=self.status)

    def add(self, out: EventWriter, text: str, details: list[dict[str, Any]]) -> None:
        self._details += details
        if not text:
            return
        if not self._texts:
            place = self._place()
            self._place_json = fields_json(place)
            out.add("response.reasoning_summary_part.added", {**place, "part": {"type": "summary_text", "text": ""}})
        self._texts.append(text)
        out.add_delta(b"response.reasoning_summary_text.delta", self._place_json, text)

    def _end(self, out: EventWriter) -> None:
        if self._texts:
            place, text = self._place(), "".join(self._texts)
            out.add("response.reasoning_summary_text.done", {**place, "text": text})
            out.add("response.reasoning_summary_part.done", {**place, "part": {"type": "summary_text", "text": text}})

    def _place(self) -> Json:
        return {"item_id": self.id, "output_index": self.index, "summary_index": 0}


class OpenCompaction(OpenItem):
    """A summary of the conversation, which comes whole."""

    __slots__ = ("_summary",)

    def __init__(self, request_id: str, index: int, summary: str) -> None:
        super().__init__("cmp", request_id, index)
        self._summary = summary

    @property
    def whole(self) -> Json:
        return compaction_item(self.id, self._summary)

    def _end(self, out: EventWriter) -> None:
        pass  # The whole item says all.


class OpenMessage(OpenItem):
    """The model's text, its refusal, or both, each as one part. `_kind` is the type of the open part."""

    __slots__ = ("_kind", "_parts", "_place_json", "_texts")

    def __init__(self, request_id: str, index: int) -> None:
        super().__init__("msg", request_id, index)
        self._kind, self._place_json = "", b""
        self._parts: list[Json] = []
        self._texts: list[str] = []

    @property
    def whole(self) -> Json:
        self._settle()
        return message_item(self.id, self._parts, status=self.status)

    def text(self, out: EventWriter, text: str) -> None:
        if self._kind != "output_text":
            self._part(out, text_part(""))
        self._texts.append(text)
        out.add_delta(b"response.output_text.delta", self._place_json, text, b',"logprobs":[]')

    def refuse(self, out: EventWriter, text: str) -> None:
        if self._kind != "refusal":
            self._part(out, {"type": "refusal", "refusal": ""})
        self._texts.append(text)
        out.add_delta(b"response.refusal.delta", self._place_json, text)

    def annotate(self, out: EventWriter, annotations: list[dict[str, Any]]) -> None:
        if self._kind != "output_text":
            self._part(out, text_part(""))
        place, listed = self._place(), self._parts[-1]["annotations"]
        for found in annotations:
            made = annotation(found)
            out.add(
                "response.output_text.annotation.added",
                {**place, "annotation_index": len(listed), "annotation": made},
            )
            listed.append(made)

    def _end(self, out: EventWriter) -> None:
        if not self._parts:
            self._part(out, text_part(""))
        self._end_part(out)

    def _part(self, out: EventWriter, part: Json) -> None:
        if self._parts:
            self._end_part(out)
        self._parts.append(part)
        self._kind, self._place_json = part["type"], fields_json(self._place())
        out.add("response.content_part.added", {**self._place(), "part": part})

    def _end_part(self, out: EventWriter) -> None:
        self._settle()
        part, place = self._parts[-1], self._place()
        if part["type"] == "refusal":
            out.add("response.refusal.done", {**place, "refusal": part["refusal"]})
        else:
            out.add("response.output_text.done", {**place, "text": part["text"], "logprobs": []})
        out.add("response.content_part.done", {**place, "part": part})

    def _settle(self) -> None:
        if self._texts:
            name = "refusal" if self._parts[-1]["type"] == "refusal" else "text"
            self._parts[-1][name] += "".join(self._texts)
            self._texts.clear()

    def _place(self) -> Json:
        return {"item_id": self.id, "output_index": self.index, "content_index": len(self._parts) - 1}


class OpenCall(OpenItem):
    """A call of one of the client's tools. The arguments of a function are written as they come; what any other tool
    gets of them is known once they are whole."""

    __slots__ = ("_call_id", "_origin", "_place_json", "_texts")

    def __init__(self, origin: Origin, call_id: str, request_id: str, index: int) -> None:
        super().__init__(call_id_prefix(origin), request_id, index)
        self._origin, self._call_id = origin, call_id
        self._place_json = fields_json({"item_id": self.id, "output_index": self.index})
        self._texts: list[str] = []

    @property
    def whole(self) -> Json:
        is_known = self._is_function or self.status != _OPEN
        arguments = "".join(self._texts) if is_known else ""
        return call_item(self._origin, self.id, self._call_id, arguments, status=self.status)

    def add(self, out: EventWriter, text: str) -> None:
        # A call ends when something else begins, and then has its arguments: `{}` for one without any.
        if text and self.status == _OPEN:
            self._write(out, text)

    def _end(self, out: EventWriter) -> None:
        if not "".join(self._texts).strip():
            self._write(out, "{}")
        place, item = {"item_id": self.id, "output_index": self.index}, self.whole
        if self._is_function:
            done = {**place, "name": item["name"], "arguments": item["arguments"]}
            out.add("response.function_call_arguments.done", done)
        elif self._origin.kind == "custom":
            out.add_delta(b"response.custom_tool_call_input.delta", self._place_json, item["input"])
            out.add("response.custom_tool_call_input.done", {**place, "input": item["input"]})

    def _write(self, out: EventWriter, text: str) -> None:
        self._texts.append(text)
        if self._is_function:
            out.add_delta(b"response.function_call_arguments.delta", self._place_json, text)

    @property
    def is_whole(self) -> bool:
        return is_json("".join(self._texts))

    @property
    def _is_function(self) -> bool:
        return self._origin.kind == "function"
