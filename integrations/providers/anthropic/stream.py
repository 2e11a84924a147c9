"""https://docs.anthropic.com/en/docs/build-with-claude/streaming"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from integrations.providers.anthropic.blocks import OpenBlock, is_own
from integrations.providers.anthropic.finish import (
    finish_reason,
    own_fields,
    refusal_text,
    reported_failure,
)
from integrations.providers.anthropic.iterations import Turn
from integrations.providers.anthropic.response import arguments_of, call_id, reasoning_detail, url_citations
from integrations.providers.anthropic.shapes import Block, Counts, Delta, Event, Message, at_the_end, merged, usage_of
from integrations.providers.base import StreamEvent
from integrations.providers.common.completion import Chunks, CollectedBlocks
from integrations.providers.common.odd_usage import despite_usage
from integrations.providers.common.sse import EventParser, ServerSentEvent
from integrations.providers.common.stream import DialectStream, Parser
from integrations.providers.common.surrogates import lenient
from integrations.providers.errors import ProviderError

_decode = despite_usage(lenient(msgspec.json.Decoder(Event).decode))
_decode_raw = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


class MessagesEvents(DialectStream[ServerSentEvent]):
    """Reads from the events of the Messages API how an answer ends and what it used."""

    def __init__(
        self,
        *,
        model: str,
        provider: str,
        redact: Callable[[ProviderError], None],
        parser: Parser[ServerSentEvent] | None = None,
    ) -> None:
        super().__init__(parser or EventParser(), model=model, provider=provider, redact=redact)
        self._counts: Counts | None = None
        self._is_counted = False  # `_is_counted` is True when an event behind the output has counted it.
        self._stop_reason: str | None = None
        self._turn = Turn(model)

    def _decoded(self, sent: ServerSentEvent) -> Event:
        try:
            event = _decode(sent.data)
            if not sent.data.isascii():
                # The whole event is decoded because msgspec checks only the fields that it reads, and blocks are passed
                # on completely.
                sent.data.decode()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("an event of the stream is not one of the Messages API") from error
        return event

    def _note_delta(self, event: Event) -> None:
        if event.delta is not None:
            self._stop_reason = event.delta.stop_reason or self._stop_reason
            if event.delta.stop_reason == "refusal":
                self._turn.note(event.delta.stop_details)
        self._count(event.usage)
        self._is_counted = self._is_counted or bool(event.usage and event.usage.output_tokens)

    def _count(self, counts: Counts | None) -> None:
        self._counts = merged(self._counts, counts)
        if self._counts is not None:
            self.usage = usage_of(self._counts, self._turn)

    def _stop(self) -> None:
        self._done = True
        self.usage = at_the_end(self.usage, is_counted=self._is_counted)

    def _finish(self, *, called_tools: bool, has_content: bool) -> None:
        self._check_ended(self._done)
        self.finish_reason = finish_reason(
            self._stop_reason, called_tools=called_tools, has_content=has_content, provider=self.provider
        )


class AnthropicStream(MessagesEvents):
    """Translates the streams of the Messages API.

    The whole block with its signature, which must come back, is sent as one entry of `reasoning_details` when it ends,
    so that clients can collect entries without merging them.
    """

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        super().__init__(model=model, provider=provider, redact=redact)
        self._chunks = Chunks(completion_id="", model=model)
        self._open: dict[int, OpenBlock] = {}
        self._calls = 0
        self._details = 0
        self._length = 0  # `_length` counts the characters of the answer's text so far.
        self._has_text = False  # `_has_text` is True when the answer's text so far has a character that is not blank.
        self._end: dict[str, Any] = {}  # `_end` collects the vendor's own fields that the end of the stream sends.
        self._collected = CollectedBlocks()
        self._started = False

    def _last_events(self, out: list[StreamEvent]) -> None:
        has_content = bool(self._length or self._calls or self._collected.has_own)
        self._finish(called_tools=self._calls > 0, has_content=has_content)
        if not self._started:
            out.append(self._role())
        if own := own_fields(self._stop_reason, **self._end):
            out.append(self._chunks.specific(own))
        out += self._chunks.last({0: self.finish_reason}, self.usage)

    def _event(self, sent: ServerSentEvent, out: list[StreamEvent]) -> None:
        try:
            event = self._decoded(sent)
        except ProviderError as error:
            if sent.event == "error":
                text = sent.data[:2000].decode("utf-8", "replace")
                raise reported_failure({"message": text}, provider=self.provider) from error
            raise
        self._seen = True
        if event.type == "content_block_delta":
            if event.delta is not None and not self._block_delta(event.index, event.delta, out):
                self._merge(event.index, sent.data)
        elif event.type == "content_block_start":
            if event.content_block is not None:
                self._block_start(event.index, event.content_block, sent.data, out)
        elif event.type == "content_block_stop":
            self._block_stop(event.index, out)
        else:
            self._message_event(event, sent.event, out)

    def _message_event(self, event: Event, name: str, out: list[StreamEvent]) -> None:
        """Ignores pings and unknown types, which the vendor announces for the future."""
        if event.type == "message_start" and event.message is not None:
            self._message_start(event.message)
            out.append(self._role())
        elif event.type == "message_delta":
            self._note_delta(event)
            self._end |= {
                "context_management": event.context_management,
                "input_transformations": event.input_transformations or self._end.get("input_transformations"),
            }
            if event.delta is not None:
                self._message_delta(event.delta, out)
        elif event.type == "message_stop":
            self._stop()
        elif event.type == "error" or name == "error" or (not event.type and event.error is not None):
            raise reported_failure(event.error, provider=self.provider)

    def _message_delta(self, delta: Delta, out: list[StreamEvent]) -> None:
        self._end |= {"stop_sequence": delta.stop_sequence, "stop_details": delta.stop_details}
        refusal = refusal_text(delta.stop_details)
        if refusal:
            out.append(self._chunks.delta({"refusal": refusal}))
        if isinstance(delta.container, dict):
            out.append(self._chunks.delta({"container": delta.container}))

    def _message_start(self, message: Message) -> None:
        self.model = self._chunks.model = message.model or self.model
        self._chunks.id = message.id
        self._end |= {
            "diagnostics": message.diagnostics,
            "input_transformations": message.input_transformations,
        }
        self._count(message.usage)

    def _role(self) -> StreamEvent:
        self._started = True
        return self._chunks.role()

    def _block_delta(self, index: int, delta: Delta, out: list[StreamEvent]) -> bool:
        block = self._open.get(index)
        match delta.type:
            case "text_delta":
                if delta.text:
                    self._text(delta.text, block, out)
            case "input_json_delta":
                self._arguments(index, block, delta.partial_json, out)
            case "thinking_delta":
                if block is not None and delta.thinking:
                    block.thinking.append(delta.thinking)
                    out.append(self._chunks.reasoning(delta.thinking))
            case "signature_delta":
                if block is not None:
                    block.signature.append(delta.signature or "")
            case "citations_delta":
                if block is not None:
                    block.citations.append(delta.citation)
            case _:
                return False
        return True

    def _text(self, text: str, block: OpenBlock | None, out: list[StreamEvent]) -> None:
        self._length += len(text)
        self._has_text = self._has_text or not text.isspace()
        if block is not None:
            block.texts.append(text)
        out.append(self._chunks.text(text))

    def _arguments(self, index: int, block: OpenBlock | None, fragment: str | None, out: list[StreamEvent]) -> None:
        """The vendor's own tools stream their input likewise; only calls that the client must answer count."""
        if block is None or not fragment:
            return
        block.arguments.append(fragment)
        if block.block.type == "tool_use":
            out.append(self._chunks.arguments(block.position, fragment))

    def _merge(self, index: int, data: bytes) -> None:
        block = self._open.get(index)
        if block is not None:
            block.merge(_decode_raw(data)["delta"])

    def _block_start(self, index: int, block: Block, data: bytes, out: list[StreamEvent]) -> None:
        opened = self._open[index] = OpenBlock(block, start=self._length)
        if block.type == "tool_use":
            opened.position = self._calls
            self._calls += 1
            block.id = call_id(block, opened.position)
            out.append(self._chunks.tool_call(opened.position, block.id, block.name or ""))
        elif block.type in ("thinking", "redacted_thinking"):
            opened.position = self._details + self._calls + self._has_text
            self._details += 1
        if block.type == "text" and block.text:
            self._text(block.text, opened, out)
        if block.type == "text" and isinstance(block.citations, list):
            opened.citations += block.citations
        if block.type == "thinking" and block.thinking:
            self._block_delta(index, Delta("thinking_delta", thinking=block.thinking), out)
        if block.type == "fallback":
            self._turn.note(block.trigger)
        if is_own(block):
            opened.raw = _decode_raw(data)["content_block"]

    def _block_stop(self, index: int, out: list[StreamEvent]) -> None:
        opened = self._open.pop(index, None)
        if opened is None:
            return
        block = opened.block
        if block.type == "tool_use":
            if not opened.arguments:
                # A call without arguments streams none, while the wire format requires a JSON object.
                out.append(self._chunks.arguments(opened.position, arguments_of(block)))
        elif block.type in ("thinking", "redacted_thinking"):
            block.thinking = "".join(opened.thinking)
            block.signature = "".join(opened.signature) or block.signature
            out.append(self._chunks.reasoning("", [reasoning_detail(block, opened.position)]))
        elif opened.citations:
            found = url_citations(opened.citations, opened.start, self._length)
            if found:
                out.append(self._chunks.listed(annotations=found))
        if own := self._collected.add(opened.whole, is_own=opened.is_own()):
            out.append(self._chunks.specific({"content": own}))

    def _error_in(self, decoded: dict[str, Any]) -> ProviderError | None:
        error = decoded.get("error")
        return None if error is None else reported_failure(error, provider=self.provider)
