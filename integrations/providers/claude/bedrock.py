"""InvokeModel and InvokeModelWithResponseStream
(https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import msgspec

from integrations.providers.anthropic.cache_markers import marked
from integrations.providers.anthropic.forwarding import MessagesForwarder, MessagesRelay
from integrations.providers.base import ChatRequest, Credentials, StreamTranslator, UpstreamRequest
from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.failures import exception_in_stream
from integrations.providers.bedrock.frames import Frames
from integrations.providers.bedrock.models import model_of
from integrations.providers.claude.requests import (
    BEDROCK,
    HEADER,
    VERSION_HEADER,
    at_host,
    known_betas,
    names_files_by_address,
    version_for,
)
from integrations.providers.common.sse import ServerSentEvent, UnreadableStreamError
from integrations.providers.errors import ProviderError

_VERSION = "bedrock-2023-05-31"
_BETAS = "anthropic_beta"
# The byte is compared as a number, since `in` with a bytes argument first raises and drops an internal error.
_CR = ord("\r")
_WHOLE, _STREAMED = "invoke", "invoke-with-response-stream"


class _Chunk(msgspec.Struct):
    bytes: str


class _Named(msgspec.Struct):
    type: str = ""


class _Betas(msgspec.Struct):
    anthropic_beta: list[str] = []


_decode_chunk = msgspec.json.Decoder(_Chunk).decode
_decode_name = msgspec.json.Decoder(_Named).decode
_decode_betas = msgspec.json.Decoder(_Betas).decode


class BedrockForwarder(MessagesForwarder):
    # Bedrock takes the version and the names of beta features in the body alone.
    forward_headers = (VERSION_HEADER, HEADER)
    # Converse, which gets the chat completions, has other fields.
    takes_own_fields = False

    def __init__(self) -> None:
        super().__init__(ADAPTER)

    def serves(self, model: str) -> bool:
        return model_of(model).is_claude

    def takes(self, body: bytes) -> bool:
        return not names_files_by_address(body)

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        betas = known_betas(request.headers, BEDROCK)
        if _BETAS.encode() in request.body:
            betas = list(dict.fromkeys((*_own_betas(request.body), *betas)))
        extra = {_BETAS: betas} if betas else None
        body = at_host(marked(request), version_for(request.headers, _VERSION), ("model", "stream"), extra)
        action = _STREAMED if request.stream else _WHOLE
        return ADAPTER.signed(request.model, action, body, credentials, stream=request.stream)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return BedrockRelay(model=request.model, provider=self.provider, redact=ADAPTER.redact)


def _own_betas(body: bytes) -> list[str]:
    try:
        return _decode_betas(body).anthropic_beta
    except msgspec.ValidationError:
        # Bedrock itself refuses a value of another type.
        return []


class BedrockRelay(MessagesRelay):
    has_plain = False

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        super().__init__(model=model, provider=provider, redact=redact, parser=_EventFrames())
        # The beginning of the body is not kept, since a body that is no stream shows as a broken frame.
        self._seen = True


class _EventFrames:
    __slots__ = ("_frames",)

    def __init__(self) -> None:
        self._frames = Frames()

    def feed(self, data: bytes) -> Iterator[ServerSentEvent]:
        for message in self._frames.feed(data):
            headers = cast("Mapping[str, object]", message.headers)
            if headers.get(":message-type") != "event":
                name = headers.get(":exception-type") or headers.get(":error-code") or ""
                raise exception_in_stream(str(name), message.payload, str(headers.get(":error-message") or ""))
            if headers.get(":event-type") == "chunk":
                yield _event(message.payload)

    def flush(self) -> tuple[ServerSentEvent, ...]:
        return ()

    def single(self, data: bytes, begin: bytes = b"", /) -> bytes:
        return b""


def _event(payload: bytes) -> ServerSentEvent:
    try:
        data = base64.b64decode(_decode_chunk(payload).bytes, validate=True)
        if _CR in data:
            # No text of JSON holds one, and clients take it for the end of a line.
            data = data.replace(b"\r", b"")
        return ServerSentEvent(data, _decode_name(data).type)
    except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error) as error:
        raise UnreadableStreamError("a frame of the event stream holds no event") from error


FORWARDERS = {ADAPTER.provider: BedrockForwarder()}
