"""https://developers.openai.com/api/reference/resources/responses/streaming-events"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec

from integrations.providers.base import StreamEvent
from integrations.providers.common.completion import Chunks
from integrations.providers.common.sse import EventParser, ServerSentEvent
from integrations.providers.common.stream import DONE, DialectStream
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import ProviderError
from integrations.providers.openai.responses_chat import (
    PARAGRAPH,
    Places,
    annotation_of,
    annotations_of,
    chat_call,
    is_call,
    is_own,
    refusal_of,
    text_of,
    thoughts_of,
)
from integrations.providers.openai.responses_request import encrypted_reasoning
from integrations.providers.openai.responses_shapes import (
    ENDS,
    Response,
    decode_response,
    failure_in,
    finish_reason,
    reported_failure,
    usage_of,
)
from integrations.providers.openai.shapes import time_of

Json = dict[str, Any]

# The type of the item that the pieces of an event belong to.
_PIECES = {
    "response.output_text.delta": "message",
    "response.output_text.annotation.added": "message",
    "response.refusal.delta": "message",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
}


class _Event(msgspec.Struct):
    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: Any = None
    item: Json | None = None
    annotation: Json | None = None
    response: msgspec.Raw = msgspec.Raw()
    error: Any = None
    code: Any = None
    message: Any = None


class _Head(msgspec.Struct):
    id: Any = None
    created_at: Any = None
    model: Any = None


class _Item(msgspec.Struct):
    """An item whose text, thoughts or arguments the client got in the pieces `sent`.

    `place` is the number of items before it, `call` the index of its call, `part` that of the summary's part;
    `annotations` counts those that were sent.
    """

    type: str
    place: int
    call: int = 0
    sent: list[str] = []
    part: int = 0
    annotations: int = 0


_ABSENT = (b"", b"null")
_decode = lenient(msgspec.json.Decoder(_Event).decode)
_decode_head = lenient(msgspec.json.Decoder(_Head).decode)


class ResponsesStream(DialectStream[ServerSentEvent]):
    """Content that never came in pieces is sent when its item is done."""

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None], form: str) -> None:
        """`form` is the format of the vendor's encrypted reasoning."""
        super().__init__(EventParser(), model=model, provider=provider, redact=redact)
        self._form = form
        self._chunks: Chunks | None = None
        self._items: dict[int, _Item] = {}
        self._places = Places()
        # The following count the calls, the messages with a text, and the thoughts that have begun.
        self._calls = self._texts = self._thoughts = 0

    def _event(self, event: ServerSentEvent, out: list[StreamEvent]) -> None:
        if event.data == DONE:
            return
        try:
            read = _decode(event.data)
            if not event.data.isascii():
                event.data.decode()
            encoded = bytes(read.response)
            response = decode_response(encoded) if encoded not in _ABSENT else None
            head = _Head() if self._chunks or response is None else _decode_head(encoded)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("an event of the stream is not one of the Responses API") from error
        if read.type == "error" or (not read.type and read.error is not None):
            reported = read.error or {"code": read.code, "message": read.message}
            raise reported_failure(reported, provider=self.provider)
        self._seen = True
        chunks = self._chunks or self._begin(head, out)
        if response is not None:
            self._note(read.type, response)
        elif read.type == "response.output_item.added" and read.item is not None:
            self._item(chunks, read.output_index, read.item, out)
        elif read.type == "response.output_item.done" and read.item is not None:
            self._ended(chunks, read.output_index, read.item, out)
        else:
            self._piece(chunks, read, out)

    def _begin(self, head: _Head, out: list[StreamEvent]) -> Chunks:
        given_id = head.id if isinstance(head.id, str) else ""
        self.model = head.model if isinstance(head.model, str) and head.model else self.model
        self._chunks = Chunks(
            completion_id=given_id or f"chatcmpl-{uuid4().hex}", model=self.model, created=time_of(head.created_at)
        )
        out.append(self._chunks.role())
        return self._chunks

    def _note(self, kind: str, response: Response) -> None:
        self.usage = usage_of(response) or self.usage
        if failure := failure_in(response, provider=self.provider):
            raise failure
        if kind in ENDS:
            self._done = True
            self.finish_reason = finish_reason(response, called_tools=self._calls > 0)

    def _item(self, chunks: Chunks, index: int, item: Json, out: list[StreamEvent]) -> _Item:
        known = self._items.get(index)
        if known is None:
            kind = str(item.get("type"))
            known = self._items[index] = _Item(kind, self._places.of(kind))
            if is_call(item):
                known.call = self._calls
                self._calls += 1
                begun = chat_call({**item, "arguments": "", "input": ""})
                out.append(chunks.delta({"tool_calls": [{"index": known.call, **begun}]}))
        return known

    def _piece(self, chunks: Chunks, read: _Event, out: list[StreamEvent]) -> None:
        kind = _PIECES.get(read.type)
        piece = read.delta if isinstance(read.delta, str) else ""
        if kind is None or not (piece or read.annotation):
            return
        item = self._item(chunks, read.output_index, {"type": kind}, out)
        if read.annotation is not None:
            item.annotations += 1
            out.append(chunks.listed(annotations=[annotation_of(read.annotation)]))
        elif kind == "reasoning":
            self._thought(chunks, item, read.summary_index, piece, out)
        elif read.type == "response.refusal.delta":
            item.sent.append(piece)
            out.append(chunks.delta({"refusal": piece}))
        elif kind == "message":
            self._text(chunks, item, piece, out)
        else:
            self._input(chunks, item, piece, out)

    def _text(self, chunks: Chunks, item: _Item, piece: str, out: list[StreamEvent]) -> None:
        if not item.sent:
            out += [chunks.text(PARAGRAPH)] if self._texts else []
            self._texts += 1
        item.sent.append(piece)
        out.append(chunks.text(piece))

    def _thought(self, chunks: Chunks, item: _Item, part: int, piece: str, out: list[StreamEvent]) -> None:
        if not item.sent or part != item.part:
            out += [chunks.reasoning(PARAGRAPH)] if self._thoughts else []
            self._thoughts += 1
        item.part = part
        item.sent.append(piece)
        out.append(chunks.reasoning(piece))

    def _input(self, chunks: Chunks, item: _Item, piece: str, out: list[StreamEvent]) -> None:
        item.sent.append(piece)
        if item.type == "function_call":
            out.append(chunks.arguments(item.call, piece))
        else:
            out.append(chunks.delta({"tool_calls": [{"index": item.call, "custom": {"input": piece}}]}))

    def _ended(self, chunks: Chunks, index: int, item: Json, out: list[StreamEvent]) -> None:
        known = self._item(chunks, index, item, out)
        if is_own(item):
            out.append(chunks.specific({"output": [item]}))
        elif is_call(item):
            if rest := _rest(known, str(item.get("arguments") or item.get("input") or "")):
                self._input(chunks, known, rest, out)
        elif known.type == "reasoning":
            self._ended_thought(chunks, known, item, out)
        else:
            self._ended_message(chunks, known, item, out)

    def _ended_thought(self, chunks: Chunks, known: _Item, item: Json, out: list[StreamEvent]) -> None:
        if not known.sent:
            for part, thought in enumerate(thoughts_of(item)):
                self._thought(chunks, known, part, thought, out)
        detail = encrypted_reasoning(item, known.place, self._form)
        if detail is not None:
            out.append(chunks.reasoning("", [detail]))

    def _ended_message(self, chunks: Chunks, known: _Item, item: Json, out: list[StreamEvent]) -> None:
        refusal = refusal_of(item)
        if refusal and not known.sent:
            out.append(chunks.delta({"refusal": refusal}))
        elif rest := _rest(known, text_of(item) or ""):
            self._text(chunks, known, rest, out)
        missing = list(annotations_of(item))[known.annotations :]
        if missing:
            out.append(chunks.listed(annotations=missing))

    def _last_events(self, out: list[StreamEvent]) -> None:
        if not self._seen or self._chunks is None:
            raise self._not_a_stream()
        if not self._done:
            raise self._unusable("the stream ended before its end was announced")
        out += self._chunks.last({0: self.finish_reason}, self.usage)


def _rest(known: _Item, whole: str) -> str:
    sent = "".join(known.sent)
    return whole[len(sent) :] if whole.startswith(sent) else ""
