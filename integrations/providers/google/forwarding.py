"""Forwards requests of the Gemini API as they came, and reads usage, end and failure from the answers
(https://ai.google.dev/api/generate-content)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamEvent,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.common.forwarder import Forwarder
from integrations.providers.common.forwarding import frames
from integrations.providers.common.search import find
from integrations.providers.common.stream import DONE, DialectStream
from integrations.providers.errors import ProviderError
from integrations.providers.google.adapter import GEMINI, STREAMED, WHOLE, GoogleAdapter
from integrations.providers.google.endpoints import is_service_account
from integrations.providers.google.events import Events
from integrations.providers.google.messages import UNSIGNED
from integrations.providers.google.models import model_named
from integrations.providers.google.reading import Reading, has_parts
from integrations.providers.google.response import parse_response
from integrations.providers.google.shapes import decode
from integrations.providers.google.stream import GoogleStream
from integrations.providers.usage import Usage

_COUNT = ":countTokens"
_NO_REQUEST = ChatRequest("", False, b"{}", {})
_SIGNATURES = ("thoughtSignature", "thought_signature")
_LF = ord("\n")
_encode = msgspec.json.Encoder().encode
_decode_body = msgspec.json.Decoder(dict[str, Any]).decode


class GeminiForwarder(Forwarder[GoogleAdapter]):
    """A native adapter (`integrations.providers.native`) of the Gemini API."""

    takes_own_fields = True

    def __init__(self, adapter: GoogleAdapter, *, vertex: bool = False) -> None:
        super().__init__(adapter)
        self._vertex = vertex

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        return Needs(access_token=True) if self._vertex and is_service_account(credentials.secret) else NOTHING

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._dialect.endpoint_of(STREAMED if request.stream else WHOLE, request, credentials)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, self._body(request))

    def _body(self, request: ChatRequest) -> bytes:
        """Models that do not sign calls do not get the signatures that stand for another vendor's; at Vertex AI they do
        not get call ids either, which it refuses there."""
        body = request.body
        if model_named(request.model).signed_calls:
            return body
        signed = find(body, UNSIGNED.encode()) >= 0
        names_calls = self._vertex and find(body, b'"id"') >= 0
        if not signed and not names_calls:
            return body
        fields = _decode_body(body)
        for part in _parts_of(fields):
            _fit(part, names_calls=names_calls)
        return _encode(fields)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        reading = Reading(self.provider)
        try:
            response = decode(body)
            reading.read(response, body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer is not of the form expected") from error
        model = response.model_version or request.model
        return ParsedResponse(body, model, reading.finish(), reading.usage_at(model))

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return GeminiRelay(model=request.model, provider=self.provider, redact=self._dialect.redact)

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        try:
            if not stream:
                return parse_response(_NO_REQUEST, answer, provider=self.provider).body
            return frames(GoogleStream(model="", provider=self.provider, redact=self._dialect.redact), answer)
        except ProviderError:
            return b""


class CountForwarder(GeminiForwarder):
    """https://ai.google.dev/api/tokens"""

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._dialect.endpoint_of(_COUNT, request, credentials)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, request.body)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            _decode_count(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer is not a count of tokens") from error
        return ParsedResponse(body, request.model, "", Usage())

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return answer


class _Count(msgspec.Struct, rename="camel"):
    total_tokens: int


_decode_count = msgspec.json.Decoder(_Count).decode


class GeminiRelay(DialectStream[bytes]):
    """Passes the events of a stream on as they come, and reads usage, end and failure from them."""

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        self._usage: Usage | None = None
        self._reading = Reading(provider)
        super().__init__(Events(), model=model, provider=provider, redact=redact)

    @property
    def usage(self) -> Usage | None:
        return self._usage if self._usage is not None else self._reading.usage_at(self.model)

    @usage.setter
    def usage(self, usage: Usage | None) -> None:
        self._usage = usage

    def _event(self, data: bytes, out: list[StreamEvent]) -> None:
        # Google sends no [DONE], but proxies made for OpenAI's streams do.
        if not data.strip() or data[:6] == DONE:
            return
        try:
            response = decode(data)
            if not data.isascii():
                data.decode()
            text = self._reading.read(response, data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("an event of the stream is not of the form expected") from error
        self._seen = True
        if response.model_version:
            self.model = response.model_version
        # Google's SDKs read one line of data for each event.
        framed = data if _LF not in data else msgspec.json.format(data, indent=-1)
        out.append(StreamEvent(b"data: " + framed, bool(text) or has_parts(response), text))

    def _last_events(self, out: list[StreamEvent]) -> None:
        self._check_ended(self._reading.is_ended)
        self.finish_reason = self._reading.finish()


def _parts_of(fields: dict[str, Any]) -> Iterable[dict[str, Any]]:
    contents = fields.get("contents")
    for content in contents if isinstance(contents, list) else [contents]:
        parts = content.get("parts") if isinstance(content, dict) else None
        yield from (part for part in (parts if isinstance(parts, list) else [parts]) if isinstance(part, dict))


def _fit(part: dict[str, Any], *, names_calls: bool) -> None:
    for name in _SIGNATURES:
        if part.get(name) == UNSIGNED:
            del part[name]
    for name in ("functionCall", "function_call", "functionResponse", "function_response"):
        if names_calls and isinstance(part.get(name), dict):
            part[name].pop("id", None)


FORWARDERS = {"google": GeminiForwarder(GEMINI)}
COUNTERS = {"google": CountForwarder(GEMINI)}
