"""Makes the events of a streamed response of the chunks of a chat completion
(https://platform.openai.com/docs/api-reference/responses-streaming)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from core.errors import ApplicationError
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.calls import CallOrder
from gateway.surfaces.responses import compaction
from gateway.surfaces.responses.open_items import OpenCall, OpenCompaction, OpenItem, OpenMessage, OpenReasoning
from gateway.surfaces.responses.relayed import failed
from gateway.surfaces.responses.response import blank, ending, usage
from gateway.surfaces.responses.tools import Toolbox

Json = dict[str, Any]

Item = TypeVar("Item", bound=OpenItem)

_encode = msgspec.json.Encoder().encode


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    annotations: list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    provider_specific_fields: dict[str, Any] | None = None


class _Choice(msgspec.Struct, gc=False):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    model: str = ""
    created: int = 0
    choices: list[_Choice] = []
    usage: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class ResponseStream:
    """The events of one response. One item is open at a time, `_open`; `_last_call` is the call that was written
    last, with the number `_call_number`."""

    __slots__ = (
        "_call_number",
        "_calls",
        "_finish_reason",
        "_items",
        "_last_call",
        "_open",
        "_out",
        "_request",
        "_request_id",
        "_response",
        "_summary",
        "_toolbox",
        "_usage",
    )

    def __init__(self, request: SurfaceRequest, request_id: str) -> None:
        self._request, self._request_id = request, request_id
        self._response: Json | None = None
        self._out = EventWriter()
        self._items: list[OpenItem] = []
        self._open: OpenItem | None = None
        self._call_number: int | None = None
        self._last_call: OpenCall | None = None
        self._calls: CallOrder[Json] = CallOrder(self._is_whole_call)
        self._finish_reason: str | None = None
        self._usage: Json | None = None
        self._toolbox: Toolbox | None = None
        # The pieces of each field that a compaction is made of, None for any other answer.
        self._summary: dict[str, list[str]] | None = defaultdict(list) if compaction.is_asked(request) else None

    def feed(self, chunks: Sequence[bytes]) -> bytes:
        for chunk in chunks:
            self._chunk(_decode(chunk))
        return self._out.taken()

    def close(self, chunks: Sequence[bytes]) -> bytes:
        for chunk in chunks:
            self._chunk(_decode(chunk))
        response = self._response or self._start(_Chunk())
        for piece in self._calls.rest():
            self._call_piece(piece)
        if self._summary is not None:
            self._compact({name: "".join(pieces) for name, pieces in self._summary.items()})
        elif not self._items:
            self._message()
        end = ending(self._finish_reason)
        self._items[-1].close(self._out, end["status"])  # The others have ended, each when the next one began.
        output = [item.whole for item in self._items]
        response |= {**end, "output": output, "usage": usage(self._usage)}
        self._out.add(f"response.{response['status']}", {"response": response})
        return self._out.taken()

    def fail(self, error: ApplicationError, relayed: bytes = b"") -> bytes:
        if self._request.is_relayed:
            return failed(relayed, error)
        response = self._response or self._start(_Chunk())
        output = [item.whole for item in self._items]
        failure = {"code": error.code, "message": error.message}
        response |= {"status": "failed", "output": output, "error": failure}
        self._out.add("response.failed", {"response": response})
        return self._out.taken()

    def _start(self, chunk: _Chunk) -> Json:
        created = chunk.created or int(time.time())
        self._response = blank(self._request, self._request_id, model=chunk.model, created=created)
        self._out.add("response.created", {"response": self._response})
        self._out.add("response.in_progress", {"response": self._response})
        return self._response

    def _chunk(self, chunk: _Chunk) -> None:
        if self._response is None:
            self._start(chunk)
        if chunk.usage is not None:
            self._usage = chunk.usage
        for choice in chunk.choices:
            if choice.index:
                continue
            self._finish_reason = choice.finish_reason or self._finish_reason
            if choice.delta is None:
                continue
            if self._summary is None:
                self._delta(choice.delta)
            else:
                for name in ("content", "refusal", "reasoning_content"):
                    self._summary[name].append(getattr(choice.delta, name) or "")

    def _compact(self, message: Json) -> None:
        summary = compaction.summary_in(message, self._request)
        self._begin(OpenCompaction(self._request_id, len(self._items), summary))

    def _delta(self, delta: _Delta) -> None:
        if delta.provider_specific_fields:
            for summary in compaction.summaries_of(delta.provider_specific_fields):
                self._begin(OpenCompaction(self._request_id, len(self._items), summary))
        if delta.reasoning_content or delta.reasoning_details:
            self._reasoning().add(self._out, delta.reasoning_content or "", delta.reasoning_details or [])
        if delta.content:
            self._message().text(self._out, delta.content)
        if delta.refusal:
            self._message().refuse(self._out, delta.refusal)
        if delta.annotations:
            self._message().annotate(self._out, delta.annotations)
        for call in delta.tool_calls or ():
            self._call(call)

    def _reasoning(self) -> OpenReasoning:
        if isinstance(self._open, OpenReasoning):
            return self._open
        return self._begin(OpenReasoning(self._request, self._request_id, len(self._items)))

    def _message(self) -> OpenMessage:
        if isinstance(self._open, OpenMessage):
            return self._open
        return self._begin(OpenMessage(self._request_id, len(self._items)))

    def _begin(self, item: Item) -> Item:
        if self._open is not None:
            self._open.close(self._out)
        self._open = item
        self._items.append(item)
        item.begin(self._out)
        return item

    def _call(self, piece: Json) -> None:
        piece.setdefault("index", 0)
        for one in self._calls.add(piece["index"], piece):
            self._call_piece(one)

    def _call_piece(self, piece: Json) -> None:
        call = self._last_call
        if call is None or piece["index"] != self._call_number:
            origin = self._tools().origin_of((piece.get("function") or {}).get("name") or "")
            call = self._last_call = self._begin(OpenCall(origin, piece, self._request_id, len(self._items)))
            self._call_number = piece["index"]
        call.add(self._out, piece)

    def _tools(self) -> Toolbox:
        """Returns the request's tools, which are read when the first of them is called."""
        if self._toolbox is None:
            self._toolbox = Toolbox.of(self._request.echo or {})
        return self._toolbox

    def _is_whole_call(self) -> bool:
        return self._last_call is not None and self._last_call.is_whole


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
        """Returns the events since the last call."""
        frames = b"".join(self._frames)
        self._frames.clear()
        return frames
