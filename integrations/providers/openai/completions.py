"""https://platform.openai.com/docs/api-reference/completions: the client's bytes are forwarded, and the answer comes
back as it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from integrations.providers.base import (
    ChatRequest,
    Credentials,
    ParsedResponse,
    StreamEvent,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.common.forwarding import framed, frames, with_model
from integrations.providers.common.odd_usage import despite_usage
from integrations.providers.common.sse import EventParser, ServerSentEvent
from integrations.providers.common.stream import DONE, DialectStream
from integrations.providers.common.usage import read_usage
from integrations.providers.errors import ProviderError
from integrations.providers.openai import azure
from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter
from integrations.providers.openai.compatible import adapters_with
from integrations.providers.openai.finish import finish_reason
from integrations.providers.openai.operations import JsonOperation
from integrations.providers.usage import Usage

# The models of OpenAI that complete texts; all others answer conversations alone
# (https://platform.openai.com/docs/models). Every model of the other vendors takes both.
_OF_OPENAI = ("gpt-3.5-turbo-instruct", "gpt-35-turbo-instruct", "davinci-002", "babbage-002")
_OPTIONS = b'"stream_options"'


class _Choice(msgspec.Struct):
    text: str | None = None
    index: int = 0
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str = ""
    created: int = 0
    usage: dict[str, Any] | None = None
    error: Any = None


_decode = despite_usage(msgspec.json.Decoder(_Completion).decode)
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class CompletionsForwarder(JsonOperation):
    def __init__(self, adapter: OpenAIAdapter, models: tuple[str, ...] = ()) -> None:
        super().__init__(adapter, "completions")
        self._models = models

    def serves(self, model: str) -> bool:
        return not self._models or model.removeprefix("ft:").startswith(self._models)

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        """Returns the client's own bytes. A stream is asked for its usage, which the client sees only if it asked."""
        endpoint = self._dialect.endpoint_of(self._path, request.model, credentials)
        body = with_model(request.body, request.model)
        if request.stream and not _asks_for_usage(request):
            body = msgspec.json.encode({**_decode_raw(body), "stream_options": {"include_usage": True}})
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, body)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        self._fields(body)
        try:
            answer = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer is not a completion") from error
        if not answer.choices:
            raise self._unusable("the answer holds no choice")
        finish = finish_reason(answer.choices[0].finish_reason, called_tools=False)
        return ParsedResponse(body, answer.model or request.model, finish, _usage(answer))

    def stream(self, request: ChatRequest) -> StreamTranslator:
        relay = CompletionsRelay(model=request.model, provider=self.provider, redact=self._dialect.redact)
        relay.shows_usage = _asks_for_usage(request)
        return relay

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        if stream:
            return frames(_Chunks(model="", provider=self.provider, redact=self._dialect.redact), answer)
        try:
            return _chat(_decode(answer), "chat.completion", "message")
        except (msgspec.DecodeError, UnicodeDecodeError):
            return b""


class CompletionsRelay(DialectStream[ServerSentEvent]):
    """Passes the chunks of a stream on as they come, and reads usage, end and failure from them."""

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        super().__init__(EventParser(), model=model, provider=provider, redact=redact)
        self.shows_usage = True

    def _event(self, event: ServerSentEvent, out: list[StreamEvent]) -> None:
        if event.data[:6] == DONE:
            self._done = True
            return
        try:
            chunk = _decode(event.data)
            if not event.data.isascii():
                event.data.decode()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("an event of the stream is not a chunk of a completion") from error
        if chunk.error or event.event == "error":
            raise self._error_in(msgspec.json.decode(event.data)) or self._unusable("the stream holds an error")
        self._seen = True
        self.model = chunk.model or self.model
        self.usage = _usage(chunk) or self.usage
        choices = chunk.choices or []
        for choice in choices:
            if choice.finish_reason:
                self.finish_reason = finish_reason(choice.finish_reason, called_tools=False)
        if not choices and not self.shows_usage:
            return
        text = "".join(choice.text or "" for choice in choices if choice.index == 0)
        out.append(StreamEvent(self._made(event, chunk), any(choice.text for choice in choices), text))

    def _made(self, event: ServerSentEvent, chunk: _Completion) -> bytes:
        return framed(event)

    def _last_events(self, out: list[StreamEvent]) -> None:
        self._check_ended(self._done or self.finish_reason)
        out += self._ending()

    def _ending(self) -> list[StreamEvent]:
        return [StreamEvent(b"data: " + DONE, False)]


class _Chunks(CompletionsRelay):
    """Makes chunks of chat completions of the same events, for the record."""

    def _made(self, event: ServerSentEvent, chunk: _Completion) -> bytes:
        return _chat(chunk, "chat.completion.chunk", "delta")

    def _ending(self) -> list[StreamEvent]:
        return []


def _asks_for_usage(request: ChatRequest) -> bool:
    if _OPTIONS not in request.body:
        return False
    options = request.fields.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _usage(answer: _Completion) -> Usage | None:
    return read_usage(answer.usage) if answer.usage else None


def _chat(answer: _Completion, kind: str, field: str) -> bytes:
    choices = [
        {
            "index": choice.index,
            field: {"role": "assistant", "content": choice.text or ""},
            "finish_reason": choice.finish_reason,
        }
        for choice in answer.choices or ()
    ]
    head = {"id": "", "object": kind, "created": answer.created, "model": answer.model, "choices": choices}
    return msgspec.json.encode({**head, "usage": answer.usage} if answer.usage else head)


FORWARDERS = {
    "openai": CompletionsForwarder(ADAPTER, _OF_OPENAI),
    "azure_openai": CompletionsForwarder(azure.ADAPTER, _OF_OPENAI),
    **{name: CompletionsForwarder(adapter) for name, adapter in adapters_with("completions").items()},
}
