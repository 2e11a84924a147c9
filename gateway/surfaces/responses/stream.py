"""https://platform.openai.com/docs/api-reference/responses-streaming"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from core.errors import ApplicationError
from gateway.surfaces import shapes
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.calls import CallOrder
from gateway.surfaces.checks import Json
from gateway.surfaces.responses import compaction
from gateway.surfaces.responses.open_items import (
    EventWriter,
    OpenCall,
    OpenCompaction,
    OpenItem,
    OpenMessage,
    OpenReasoning,
)
from gateway.surfaces.responses.response import blank, ending, usage
from gateway.surfaces.responses.tools import Toolbox
from integrations.providers.common.sse import EventParser
from integrations.providers.common.surrogates import lenient

Item = TypeVar("Item", bound=OpenItem)

_encode = msgspec.json.Encoder().encode


class ResponseStream:
    """One item is open at a time, `_open`; `_last_call` is the call that was written last, with the number
    `_call_number`."""

    def __init__(self, request: SurfaceRequest, request_id: str) -> None:
        self._request, self._request_id = request, request_id
        self._response: Json | None = None
        self._out = EventWriter()
        self._items: list[OpenItem] = []
        self._open: OpenItem | None = None
        self._call_number: int | None = None
        self._last_call: OpenCall | None = None
        self._calls: CallOrder[shapes.ToolCall] = CallOrder(self._is_whole_call)
        self._finish_reason: str | None = None
        self._usage: Json | None = None
        self._toolbox: Toolbox | None = None
        # The pieces of each field that a compaction is made of, None for any other answer.
        self._summary: dict[str, list[str]] | None = defaultdict(list) if compaction.is_asked(request) else None

    def feed(self, chunks: Sequence[bytes]) -> bytes:
        for chunk in chunks:
            self._chunk(shapes.decode(chunk))
        return self._out.taken()

    def close(self, chunks: Sequence[bytes]) -> bytes:
        for chunk in chunks:
            self._chunk(shapes.decode(chunk))
        response = self._response or self._start(shapes.Completion())
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
        response = self._response or self._start(shapes.Completion())
        output = [item.whole for item in self._items]
        failure = {"code": error.code, "message": error.message}
        response |= {"status": "failed", "output": output, "error": failure}
        self._out.add("response.failed", {"response": response})
        return self._out.taken()

    def _start(self, chunk: shapes.Completion) -> Json:
        created = chunk.created or int(time.time())
        self._response = blank(self._request, self._request_id, model=chunk.model or "", created=created)
        self._out.add("response.created", {"response": self._response})
        self._out.add("response.in_progress", {"response": self._response})
        return self._response

    def _chunk(self, chunk: shapes.Completion) -> None:
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

    def _delta(self, delta: shapes.Message) -> None:
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

    def _call(self, piece: shapes.ToolCall) -> None:
        for one in self._calls.add(piece.index or 0, piece):
            self._call_piece(one)

    def _call_piece(self, piece: shapes.ToolCall) -> None:
        call, function, number = self._last_call, piece.function or shapes.Function(), piece.index or 0
        if call is None or number != self._call_number:
            origin = self._tools().origin_of(function.name or "")
            call = self._last_call = self._begin(OpenCall(origin, piece.id or "", self._request_id, len(self._items)))
            self._call_number = number
        call.add(self._out, function.arguments or "")

    def _tools(self) -> Toolbox:
        if self._toolbox is None:
            self._toolbox = Toolbox.of(self._request.echo or {})
        return self._toolbox

    def _is_whole_call(self) -> bool:
        return self._last_call is not None and self._last_call.is_whole


_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def failed(relayed: bytes, error: ApplicationError) -> bytes:
    """Returns the event that ends the response as failed. `relayed` are the provider's events that the client has seen;
    they have the response as it began, its items that are done, and the number of the last event. Without the response
    it is an event of the error alone."""
    response: dict[str, Any] | None = None
    output: list[Any] = []
    number = -1
    parser = EventParser()
    for event in [*parser.feed(relayed), *parser.flush()]:
        fields = _decode(event.data)
        number = _number(fields, number + 1)
        if isinstance(fields.get("response"), dict):
            response = fields["response"]
        if fields.get("type") == "response.output_item.done":
            output.append(fields.get("item"))
    if response is None:
        return _event("error", number + 1, {"code": error.code, "message": error.message, "param": None})
    failure = {"code": error.code, "message": error.message}
    made = {**response, "status": "failed", "output": output, "error": failure}
    return _event("response.failed", number + 1, {"response": made})


def _number(fields: dict[str, Any], number: int) -> int:
    given = fields.get("sequence_number")
    return given if isinstance(given, int) else number


def _event(kind: str, number: int, fields: dict[str, Any]) -> bytes:
    data = _encode({"type": kind, "sequence_number": number, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)
