"""https://docs.cohere.com/docs/streaming"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import msgspec

from integrations.providers.base import StreamEvent
from integrations.providers.cohere.response import (
    failed,
    finish_reason,
    logprobs_of,
    unknown_reason,
    url_citations,
    usage_of,
)
from integrations.providers.common.completion import Chunks
from integrations.providers.common.sse import EventParser, ServerSentEvent
from integrations.providers.common.stream import DONE, DialectStream
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import ProviderError


class _Content(msgspec.Struct):
    text: str | None = None
    thinking: str | None = None


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    content: _Content | list[Any] | None = None
    tool_plan: str | None = None
    tool_calls: _Call | list[Any] | None = None
    citations: dict[str, Any] | list[Any] | None = None


class _Delta(msgspec.Struct):
    message: _Message | None = None
    finish_reason: str | None = None
    usage: Any = None
    error: Any = None


class _Event(msgspec.Struct):
    type: str
    id: str | None = None
    index: int | None = None
    delta: _Delta | None = None
    logprobs: Any = None


_decode = lenient(msgspec.json.Decoder(_Event).decode)
_decode_any = lenient(msgspec.json.Decoder(dict[str, Any]).decode)
_NO_MESSAGE = _Message()


class CohereStream(DialectStream[ServerSentEvent]):
    """Translates the streams of Cohere's chat, version 2."""

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        super().__init__(EventParser(), model=model, provider=provider, redact=redact)
        # The random id is used where the stream sends none.
        self._chunks = Chunks(completion_id=f"chatcmpl-{uuid4().hex}", model=model)
        self._calls: dict[int, int] = {}  # `_calls` maps Cohere's index of a call to the gateway's.
        self._count = 0
        self._silent: set[int] = set()  # `_silent` holds the gateway's indices of calls that have no arguments yet.
        # `_starts` maps a content block to the offset of its text in the whole text.
        self._starts: dict[int, int] = {}
        self._length = 0
        self._plan = ""  # The plan is collected here until it is complete.
        # `_thoughts` is the last block of thinking, so that a line break separates two blocks.
        self._thoughts: int | None = None
        self._reason: str | None = None
        self._started = False
        self._handlers: Mapping[str, Callable[[_Event, _Message], Iterable[StreamEvent]]] = {
            "message-start": self._message_start,
            "content-start": self._content,
            "content-delta": self._content,
            "tool-plan-delta": self._tool_plan,
            "tool-call-start": self._tool_call_start,
            "tool-call-delta": self._tool_call_delta,
            "tool-call-end": self._tool_call_end,
            "citation-start": self._citation,
            "message-end": self._message_end,
        }

    def _event(self, event: ServerSentEvent, out: list[StreamEvent]) -> None:
        if event.data[:6] == DONE:
            self._done = True
            return
        decoded = self._decoded(event)
        if decoded is None:
            return
        self._seen = True
        handler = self._handlers.get(decoded.type)
        if handler is None:
            return  # The other events are content-end, citation-end, debug, and types that may be added.
        message = (decoded.delta.message if decoded.delta is not None else None) or _NO_MESSAGE
        made = list(handler(decoded, message))
        if made and not self._started:
            # A stream without a message-start, which Cohere always sends, still gets a role first.
            self._started = True
            out.append(self._chunks.role())
        out += made

    def _last_events(self, out: list[StreamEvent]) -> None:
        if not self._seen:
            raise self._not_a_stream()
        if self._reason is None:
            raise self._unusable("the stream ended before its end was announced")
        self.finish_reason = finish_reason(self._reason, called_tools=self._count > 0)
        out += self._chunks.last({0: self.finish_reason}, self.usage)

    def _decoded(self, event: ServerSentEvent) -> _Event | None:
        try:
            decoded = _decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            failure = self._error_event(event.data)
            if failure is None:
                return None
            raise failure from error
        if decoded.type == "error" or event.event == "error":
            raise self._error_event(event.data) or self._unusable("an error without a message")
        return decoded

    def _message_start(self, event: _Event, message: _Message) -> Iterator[StreamEvent]:
        if not self._started:
            self._started = True
            self._chunks.id = event.id or self._chunks.id
            yield self._chunks.role()

    def _content(self, event: _Event, message: _Message) -> Iterator[StreamEvent]:
        content, index = message.content, event.index or 0
        if not isinstance(content, _Content):
            return
        self._starts.setdefault(index, self._length)
        if content.thinking:
            yield self._chunks.reasoning(self._apart(index) + content.thinking)
        if content.text:
            self._length += len(content.text)
            logprobs = None if event.logprobs is None else logprobs_of(event.logprobs)
            yield self._chunks.text(content.text, logprobs=logprobs)

    def _apart(self, index: int) -> str:
        last, self._thoughts = self._thoughts, index
        return "" if last is None or last == index else "\n"

    def _tool_plan(self, event: _Event, message: _Message) -> Iterator[StreamEvent]:
        if message.tool_plan:
            self._plan += message.tool_plan
            yield self._chunks.reasoning(self._apart(-1) + message.tool_plan)

    def _tool_call_start(self, event: _Event, message: _Message) -> Iterator[StreamEvent]:
        call = message.tool_calls
        if not isinstance(call, _Call):
            return
        position, self._count = self._count, self._count + 1
        self._calls[position if event.index is None else event.index] = position
        function = call.function or _Function()
        if not function.arguments:
            self._silent.add(position)
        yield self._chunks.tool_call(
            position, call.id or f"call_{position}", function.name or "", function.arguments or ""
        )

    def _tool_call_delta(self, event: _Event, message: _Message) -> Iterator[StreamEvent]:
        call = message.tool_calls
        position = self._position(event)
        if position is None or not isinstance(call, _Call) or call.function is None or not call.function.arguments:
            return
        self._silent.discard(position)
        yield self._chunks.arguments(position, call.function.arguments)

    def _tool_call_end(self, event: _Event, message: _Message) -> Iterator[StreamEvent]:
        """Yields `{}` for a call without arguments: Cohere sends nothing, and the wire format requires an object."""
        position = self._position(event)
        if position in self._silent:
            self._silent.discard(position)
            yield self._chunks.arguments(position, "{}")

    def _position(self, event: _Event) -> int | None:
        if event.index is None:
            return self._count - 1 if self._count else None
        return self._calls.get(event.index)

    def _citation(self, event: _Event, message: _Message) -> Iterator[StreamEvent]:
        citation = message.citations
        if not isinstance(citation, dict):
            return
        block = citation.get("content_index")
        offset = self._starts.get(block, 0) if isinstance(block, int) else 0
        yield self._chunks.listed(citations=[citation], annotations=url_citations(citation, offset))
        yield self._chunks.specific({"citations": [citation]})

    def _message_end(self, event: _Event, message: _Message) -> Iterator[StreamEvent]:
        delta = event.delta or _Delta()
        self.usage = usage_of(delta.usage) or self.usage
        reason = delta.finish_reason or ""
        failure = failed(
            reason,
            delta.error,
            self.usage,
            provider=self.provider,
            called_tools=self._count > 0,
            has_text=self._length > 0,
        )
        if failure is not None:
            raise failure
        self._reason, self._done = reason, True
        for position in sorted(self._silent):
            yield self._chunks.arguments(position, "{}")
        self._silent.clear()
        fields = {**unknown_reason(reason), **({"tool_plan": self._plan} if self._plan else {})}
        if fields:
            yield self._chunks.specific(fields)

    def _error_event(self, data: bytes) -> ProviderError | None:
        try:
            decoded = _decode_any(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._unusable("an event of the stream is not a JSON object")
        if failure := self._error_in(decoded):
            return failure
        if isinstance(decoded.get("type"), str) and decoded["type"] not in self._handlers:
            return None
        return self._unusable("an event of the stream has an unknown shape")
