"""Reads the needed parts of ConverseStream's frames; botocore's parser verifies their checksums.
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
from botocore.eventstream import EventStreamBuffer, EventStreamHeaderParser, EventStreamMessage, ParserError

from integrations.providers.bedrock.shapes import Counts, Image, Struct
from integrations.providers.common.odd_usage import despite_usage
from integrations.providers.common.sse import UnreadableStreamError
from integrations.providers.common.surrogates import lenient

# A frame with valid checksums and invalid headers raises one of the exceptions besides ParserError.
_BROKEN_FRAMES = (ParserError, KeyError, ValueError, struct.error)


class ToolUseStart(Struct):
    tool_use_id: str = ""
    name: str = ""
    type: str | None = None

    def as_block(self) -> dict[str, Any]:
        use = {"toolUseId": self.tool_use_id, "name": self.name}
        return {**use, "type": self.type} if self.type else use


class ImageStart(Struct):
    format: str | None = None


class Start(Struct):
    tool_use: ToolUseStart | None = None
    tool_result: dict[str, Any] | None = None
    image: ImageStart | None = None


class ToolUseDelta(Struct):
    input: str | None = ""


class ReasoningDelta(Struct):
    text: str | None = ""
    signature: str | None = ""
    redacted_content: bytes | None = b""  # Redacted reasoning is base64 on the wire.


class Delta(Struct):
    text: str | None = None
    tool_use: ToolUseDelta | None = None
    reasoning_content: ReasoningDelta | None = None
    citation: dict[str, Any] | None = None
    tool_result: list[Any] | None = None
    image: Image | None = None


class Event(Struct):
    content_block_index: int = 0
    start: Start | None = None
    delta: Delta | None = None
    stop_reason: str | None = ""
    usage: Counts | None = None
    additional_model_response_fields: Any = None
    trace: Any = None
    performance_config: Any = None
    service_tier: Any = None


decode_event = despite_usage(lenient(msgspec.json.Decoder(Event).decode))


@lru_cache(maxsize=256)
def _headers(data: bytes) -> dict[str, Any]:
    return dict(EventStreamHeaderParser().parse(data))


class _HeaderParser(EventStreamHeaderParser):
    """Caches parsed headers: a stream has few different ones, and parsing them is most of a frame's cost."""

    def parse(self, data: bytes) -> dict[str, Any]:
        return _headers(data)


_HEADER_PARSER = _HeaderParser()


class Frames:
    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = EventStreamBuffer()
        # If botocore moves its header parser to another attribute, the assignment has no effect and botocore's own
        # parser is used.
        vars(self._buffer)["_header_parser"] = _HEADER_PARSER

    def feed(self, data: bytes) -> Iterator[EventStreamMessage]:
        try:
            self._buffer.add_data(data)
            yield from self._buffer
        except _BROKEN_FRAMES as error:
            raise UnreadableStreamError("a frame of the event stream is broken") from error

    def flush(self) -> Iterable[EventStreamMessage]:
        return ()

    def single(self, data: bytes, begin: bytes = b"", /) -> bytes:
        return b""
