"""Forwards requests of the Gemini API as they came, and reads usage, end and failure from the answers
(https://ai.google.dev/api/generate-content)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from typing_extensions import override

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
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.google.adapter import GEMINI, STREAMED, WHOLE, GoogleAdapter
from integrations.providers.google.endpoints import is_service_account
from integrations.providers.google.events import Events
from integrations.providers.google.failures import google_failure_in_body
from integrations.providers.google.finish import FILTERED, finish_reason, is_blocked, unusable_end
from integrations.providers.google.messages import UNSIGNED
from integrations.providers.google.models import model_named
from integrations.providers.google.parts import Choice
from integrations.providers.google.response import indexes_of, parse_response
from integrations.providers.google.shapes import Candidate, Response, UsageMetadata, decode, has, plain
from integrations.providers.google.stream import GoogleStream
from integrations.providers.google.usage import is_counted, read_usage, with_searches
from integrations.providers.usage import Usage

_COUNT = ":countTokens"
_NO_REQUEST = ChatRequest("", False, b"{}", {})
_SIGNATURES = ("thoughtSignature", "thought_signature")
_LF = ord("\n")
_encode = msgspec.json.Encoder().encode
_decode_body = msgspec.json.Decoder(dict[str, Any]).decode


class GeminiForwarder(Forwarder):
    """A native adapter (`integrations.providers.native`) of the Gemini API."""

    takes_own_fields = True

    def __init__(self, adapter: GoogleAdapter, *, vertex: bool = False) -> None:
        super().__init__(adapter)
        self._adapter, self._vertex = adapter, vertex

    @override
    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        return Needs(access_token=True) if self._vertex and is_service_account(credentials.secret) else NOTHING

    @override
    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._adapter.endpoint_of(STREAMED if request.stream else WHOLE, request, credentials)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, self._body(request))

    def _body(self, request: ChatRequest) -> bytes:
        """Returns the client's body. A model that does not sign its calls gets none of the signatures that stand for
        those of another vendor, and at Vertex AI no ids of calls, which it refuses there."""
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

    @override
    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            response = decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer is not of the form expected") from error
        reading = _Reading(self.provider)
        reading.read(response, body)
        model = response.model_version or request.model
        return ParsedResponse(body, model, reading.finish(), reading.usage_at(model))

    def _unusable(self, problem: str) -> ProviderError:
        return ProviderError(problem, kind=FailureKind.UNUSABLE, provider=self.provider, status=200)

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
    """A native adapter of the count of tokens (https://ai.google.dev/api/tokens)."""

    @override
    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._adapter.endpoint_of(_COUNT, request, credentials)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, request.body)

    @override
    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            _decode_count(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer is not a count of tokens") from error
        return ParsedResponse(body, request.model, "", Usage())

    @override
    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return answer


class _Count(msgspec.Struct, rename="camel"):
    total_tokens: int


_decode_count = msgspec.json.Decoder(_Count).decode


class _Reading:
    """What the events of an answer say of its end and its usage. A whole answer is one event."""

    __slots__ = ("_choices", "_counts", "_is_blocked", "_provider")

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._choices: dict[int, Choice] = {}
        self._counts: UsageMetadata | None = None
        self._is_blocked = False

    @property
    def is_ended(self) -> bool:
        choices = self._choices
        return self._is_blocked or (bool(choices) and all(choice.finished for choice in choices.values()))

    def read(self, response: Response, data: bytes) -> str:
        """Takes over an event. Returns the text that it adds to the first choice. Raises ProviderError."""
        if is_counted(response.usage_metadata):
            self._counts = response.usage_metadata
        if has(response.error):
            raise google_failure_in_body(plain(msgspec.Raw(data)), provider=self._provider)
        candidates = response.candidates
        if candidates:
            return self._candidates_of(candidates)
        if has(response.prompt_feedback) and is_blocked(response.feedback()):
            self._is_blocked = True
            for choice in self._choices.values():
                choice.cut_by_filter()
        return ""

    def _candidates_of(self, candidates: list[Candidate]) -> str:
        text = ""
        if len(candidates) == 1 and (choice := self._choices.get(candidates[0].index or 0)) is not None:
            piece = _text_alone(candidates[0])
            if piece:
                choice.text.append(piece)
                choice.length += len(piece)
                return "" if choice.index else piece
        for index, candidate in zip(indexes_of(candidates), candidates, strict=True):
            choice = self._choices.get(index)
            if choice is None:
                choice = self._choices[index] = Choice(index, "")
            start = len(choice.text)
            for _ in choice.read(candidate):
                pass  # The choice itself keeps what its end depends on.
            if not index:
                text = "".join(choice.text[start:])
        return text

    def finish(self) -> str:
        """Returns the finish reason. Raises ProviderError for what is no answer."""
        if not self._choices:
            if self._is_blocked:
                return FILTERED
            raise ProviderError(
                "the provider gave no candidate and no reason",
                kind=FailureKind.UNUSABLE,
                provider=self._provider,
                status=200,
                usage=self.usage_at(""),
            )
        for choice in self._choices.values():
            if failure := unusable_end(choice, provider=self._provider, usage=self.usage_at("")):
                raise failure
        first = self._choices[min(self._choices)]
        return finish_reason(first.finished, called_tools=first.calls > 0)

    def usage_at(self, model: str) -> Usage | None:
        """Returns the usage of an answer of the model, None where nothing was counted. A refused prompt uses nothing,
        since no model has read it."""
        if self._counts is None:
            return Usage() if self._is_blocked and not self._choices else None
        return with_searches(read_usage(self._counts), [one.grounding for one in self._choices.values()], model)


class GeminiRelay(DialectStream[bytes]):
    """Passes the events of a stream on as they come, and reads usage, end and failure from them."""

    __slots__ = ("_reading", "_usage")

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        self._usage: Usage | None = None
        self._reading = _Reading(provider)
        super().__init__(Events(), model=model, provider=provider, redact=redact)

    # mypy does not see the `override` decorator on a property that has a setter.
    @property  # type: ignore[explicit-override]
    @override
    def usage(self) -> Usage | None:
        return self._usage if self._usage is not None else self._reading.usage_at(self.model)

    @usage.setter
    def usage(self, usage: Usage | None) -> None:
        self._usage = usage

    @override
    def _event(self, data: bytes, out: list[StreamEvent]) -> None:
        # Google sends no [DONE], but proxies made for OpenAI's streams do.
        if not data.strip() or data[:6] == DONE:
            return
        try:
            response = decode(data)
            if not data.isascii():
                data.decode()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("an event of the stream is not of the form expected") from error
        self._seen = True
        if response.model_version:
            self.model = response.model_version
        text = self._reading.read(response, data)
        # Google's SDKs read one line of data for each event.
        framed = data if _LF not in data else msgspec.json.format(data, indent=-1)
        out.append(StreamEvent(b"data: " + framed, _has_output(response), text))

    @override
    def _last_events(self, out: list[StreamEvent]) -> None:
        if not self._seen:
            raise self._not_a_stream()
        if not self._reading.is_ended:
            raise self._unusable("the stream ended before its end was announced")
        self.finish_reason = self._reading.finish()


def _text_alone(candidate: Candidate) -> str:
    """Returns the text of an event in the middle of an answer, as nearly all are; empty for any other event."""
    parts = candidate.content.parts if candidate.content is not None else None
    if candidate.finish_reason or not parts or len(parts) != 1 or candidate.has_remarks():
        return ""
    part = parts[0]
    return "" if part.thought or part.thought_signature or part.function_call is not None else part.text or ""


def _has_output(response: Response) -> bool:
    # The generator of `any` would cost more than the loop.
    for candidate in response.candidates or ():  # noqa: SIM110
        if candidate.content is not None and candidate.content.parts:
            return True
    return False


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
