"""https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html; botocore's parser reads the
frames and verifies their checksums, without I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from botocore.eventstream import EventStreamMessage

from integrations.providers.base import ChatRequest, StreamEvent
from integrations.providers.bedrock.blocks import Pieces, is_own
from integrations.providers.bedrock.failures import exception_in_stream
from integrations.providers.bedrock.frames import (
    Delta,
    Frames,
    ReasoningDelta,
    Start,
    decode_event,
)
from integrations.providers.bedrock.models import model_of
from integrations.providers.bedrock.schema import schema_tool
from integrations.providers.bedrock.shapes import (
    PROVIDER,
    SERVER_TOOL,
    annotation,
    check_usable,
    citation_of,
    finish_reason,
    image_part,
    reasoning_detail,
    specific_fields,
)
from integrations.providers.bedrock.tools import forbids_calls
from integrations.providers.common.completion import Chunks, CollectedBlocks
from integrations.providers.common.stream import DialectStream
from integrations.providers.errors import ProviderError

_ID_BYTES = 4096


@dataclass(slots=True)
class _Block:
    """`position` is the tool call's index among the calls, `place` the thought's place in the message. `is_answer`: the
    call's input is the answer's text."""

    position: int = -1
    place: int = -1
    has_arguments: bool = False
    reasoning: str = ""
    signature: str = ""
    redacted: bytes = b""
    image_format: str = "png"
    hidden: bool = False
    is_answer: bool = False
    pieces: Pieces = field(default_factory=Pieces)


class BedrockStream(DialectStream[EventStreamMessage]):
    """Translates the event streams of ConverseStream."""

    def __init__(self, request: ChatRequest, redact: Callable[[ProviderError], None]) -> None:
        super().__init__(Frames(), model=request.model, provider=PROVIDER, redact=redact)
        # The beginning of the body is not kept, since a body that is no stream shows as a broken frame.
        self._seen = True
        self._model = model_of(request.model)
        self._request = request
        self._no_calls = forbids_calls(request.fields)
        self._schema_tool = schema_tool(request.fields, self._model)
        # Where a tool stands for a schema, other text is held back, since it is the answer if the tool is not called.
        self._talk = ""
        self._chunks = Chunks(completion_id="", model=request.model)
        self._started = b""
        self._opened = False
        self._blocks: dict[int, _Block] = {}
        self._ids: set[str] = set()
        self._images = 0
        self._details = 0
        self._text_length = 0
        self._text_start = 0
        self._last_text = -1  # `_last_text` is the number of the block with the latest text.
        self._collected = CollectedBlocks()
        self._specific: dict[str, Any] = {}
        self._stop_reason = ""
        self._stopped = False

    def _last_events(self, out: list[StreamEvent]) -> None:
        if not self._stopped:
            raise self._unusable("the stream ended before its end was announced")
        check_usable(self._stop_reason, has_output=self._has_output, usage=self.usage)
        if self._specific:
            out.append(self._chunks.specific(self._specific))
        out += self._chunks.last({0: self.finish_reason}, self.usage)

    @property
    def _has_output(self) -> bool:
        return bool(self._text_length or self._ids or self._images)

    def _event(self, message: EventStreamMessage, out: list[StreamEvent]) -> None:
        headers = cast("Mapping[str, object]", message.headers)
        if headers.get(":message-type") == "event":
            self._converse_event(headers.get(":event-type"), message.payload, out)
            return
        name = headers.get(":exception-type") or headers.get(":error-code") or ""
        raise exception_in_stream(str(name), message.payload, str(headers.get(":error-message") or ""))

    def _converse_event(self, kind: object, payload: bytes, out: list[StreamEvent]) -> None:
        try:
            event = decode_event(payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("an event of the stream is not of Converse's form") from error
        if kind == "metadata":
            self.usage = event.usage.usage(event.service_tier) if event.usage else self.usage
            self._specific |= specific_fields(event)
            return
        if kind == "messageStart":
            self._started = payload
            return
        if self._stopped:
            return
        if not self._opened:
            out.append(self._open(payload))
        match kind:
            case "contentBlockDelta" if event.delta is not None:
                out += self._delta(event.content_block_index, event.delta)
            case "contentBlockStart" if event.start is not None:
                out += self._start(event.content_block_index, event.start)
            case "contentBlockStop":
                out += self._end_block(event.content_block_index)
            case "messageStop":
                self._specific |= specific_fields(event)
                out += self._end(event.stop_reason or "")

    def _open(self, payload: bytes) -> StreamEvent:
        """The chunk with the role.

        Converse sends no id, so one is derived from bytes at fixed places, however the network cuts the stream. AWS
        pads each event at random, so answers with equal beginnings get different ids.
        """
        self._opened = True
        seed = self._request.body[-_ID_BYTES:] + self._started[:_ID_BYTES] + payload[:_ID_BYTES]
        self._chunks.id = f"chatcmpl-{hashlib.sha256(seed).hexdigest()[:24]}"
        return self._chunks.role()

    def _block(self, index: int) -> _Block:
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _Block()
        return block

    def _start(self, index: int, start: Start) -> list[StreamEvent]:
        block = self._block(index)
        if start.image is not None:
            block.image_format = start.image.format or "png"
        block.pieces.result = start.tool_result
        if start.tool_use is None:
            return []
        block.pieces.use = start.tool_use.as_block()
        if self._schema_tool and start.tool_use.name == self._schema_tool:
            block.is_answer = not self._text_length
            block.hidden = not block.is_answer
            return []
        if start.tool_use.type == SERVER_TOOL or self._no_calls:
            block.hidden = True
            return []
        block.position = len(self._ids)
        given = start.tool_use.tool_use_id
        call_id = given if given and given not in self._ids else f"call_{block.position}"
        self._ids.add(call_id)
        return [self._chunks.tool_call(block.position, call_id, start.tool_use.name)]

    def _delta(self, index: int, delta: Delta) -> list[StreamEvent]:
        if delta.text is not None:
            return self._text(index, delta.text)
        if delta.tool_use is not None:
            return self._input(index, delta.tool_use.input or "")
        if delta.reasoning_content is not None:
            return self._reasoning(self._block(index), delta.reasoning_content)
        if delta.tool_result is not None:
            self._block(index).pieces.results += delta.tool_result
        if delta.citation is not None:
            return self._citation(self._block(index), delta.citation)
        if delta.image is not None and delta.image.source and delta.image.source.bytes:
            self._images += 1
            image = image_part(self._block(index).image_format, delta.image.source.bytes)
            return [self._chunks.listed(images=[image])]
        return []

    def _citation(self, block: _Block, citation: dict[str, Any]) -> list[StreamEvent]:
        found = annotation(citation_of(citation), self._text_start, self._text_length)
        block.pieces.citations.append(citation)
        return [self._chunks.listed(annotations=[found])] if found else []

    def _text(self, index: int, text: str) -> list[StreamEvent]:
        if self._schema_tool:
            self._talk += text
            return []
        self._block(index).pieces.texts.append(text)
        return self._visible(index, text)

    def _visible(self, index: int, text: str) -> list[StreamEvent]:
        if not text:
            return []
        if index != self._last_text:
            self._last_text, self._text_start = index, self._text_length
        self._text_length += len(text)
        return [self._chunks.text(text)]

    def _input(self, index: int, fragment: str) -> list[StreamEvent]:
        block = self._block(index)
        block.pieces.input.append(fragment)
        if block.is_answer:
            block.has_arguments = block.has_arguments or bool(fragment)
            return self._visible(index, fragment)
        return self._arguments(block, fragment)

    def _arguments(self, block: _Block, fragment: str) -> list[StreamEvent]:
        if block.hidden or block.position < 0 or not fragment:
            return []
        block.has_arguments = True
        return [self._chunks.arguments(block.position, fragment)]

    def _reasoning(self, block: _Block, delta: ReasoningDelta) -> list[StreamEvent]:
        if block.place < 0:
            block.place = self._details + len(self._ids) + bool(self._text_length)
        block.signature += delta.signature or ""
        block.redacted += delta.redacted_content or b""
        if not delta.text:
            return []
        block.reasoning += delta.text
        return [self._chunks.reasoning(delta.text)]

    def _end_block(self, index: int) -> list[StreamEvent]:
        block = self._blocks.pop(index, None)
        if block is None:
            return []
        return self._end_of(block, index) + self._own(block)

    def _own(self, block: _Block) -> list[StreamEvent]:
        whole = block.pieces.whole(block.reasoning, block.signature, block.redacted)
        if self._schema_tool or not whole or (block.hidden and not is_own(whole)):
            return []
        content = self._collected.add(lambda: whole, is_own=is_own(whole))
        return [self._chunks.specific({"content": content})] if content else []

    def _end_of(self, block: _Block, index: int) -> list[StreamEvent]:
        if block.position >= 0 and not block.has_arguments:
            # A call of a function without parameters streams no input.
            return [self._chunks.arguments(block.position, "{}")]
        if block.is_answer and not block.has_arguments:
            return self._visible(index, "{}")
        detail = reasoning_detail(self._model, block.place, block.reasoning, block.signature, block.redacted)
        if detail is None:
            return []
        self._details += 1
        return [self._chunks.reasoning("", [detail])]

    def _end(self, stop_reason: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for index in sorted(self._blocks):
            events += self._end_block(index)
        if not self._text_length:
            events += self._visible(0, self._talk)
        self._stopped = True
        self._stop_reason = stop_reason
        self.finish_reason = finish_reason(stop_reason, called=bool(self._ids))
        return events
