from __future__ import annotations

import msgspec

from integrations.providers.anthropic.adapter import TRAITS, AnthropicAdapter, FoundryAdapter
from integrations.providers.anthropic.cache_markers import marked
from integrations.providers.anthropic.finish import finish_reason, reported_failure
from integrations.providers.anthropic.response import parse_response, read_message
from integrations.providers.anthropic.shapes import (
    Block,
    Event,
    Message,
    usage_in,
    usage_of,
)
from integrations.providers.anthropic.stream import AnthropicStream, MessagesEvents
from integrations.providers.base import (
    ChatRequest,
    Credentials,
    ParsedResponse,
    StreamEvent,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.common.adapter import DialectAdapter
from integrations.providers.common.forwarder import Forwarder
from integrations.providers.common.forwarding import framed, frames, with_model
from integrations.providers.common.search import find
from integrations.providers.common.sse import ServerSentEvent
from integrations.providers.errors import ProviderError, unusable
from integrations.providers.given import Given, Kept, given, given_in_object
from integrations.providers.usage import Usage

_decode_usual = msgspec.json.Decoder(Message).decode
# The stop reasons of answers without calls of tools.
_USUAL_ENDS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
_decode_conforming = msgspec.json.Decoder(Event).decode
_DELTA_BEGINS = b"event: content_block_delta\ndata: "
# A request with this field, also without an id, lets the next one name its answer.
_COMPARES = b'"diagnostics"'
_NO_REQUEST = ChatRequest("", False, b"{}", {})


class MessagesForwarder(Forwarder[DialectAdapter]):
    """A native adapter (`integrations.providers.native`) of the Messages API; each host of Claude adds its requests.

    `anthropic-beta` is not a header of this protocol: the integration passes it on, beside its own beta features.
    """

    forward_headers: tuple[str, ...] = ("anthropic-version",)
    takes_own_fields = True
    parameters = frozenset({"max_tokens", "temperature", "thinking", "top_k", "top_p"})

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return _parsed(request, body, provider=self.provider)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        relay = MessagesRelay(model=request.model, provider=self.provider, redact=self._dialect.redact)
        relay.may_compare = find(request.body, _COMPARES) >= 0
        return relay

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        try:
            if not stream:
                return parse_response(_NO_REQUEST, answer, provider=self.provider).body
            return frames(AnthropicStream(model="", provider=self.provider, redact=self._dialect.redact), answer)
        except ProviderError:
            return b""


def _conforming(body: bytes) -> ParsedResponse | None:
    try:
        message = _decode_usual(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if message.type != "message" or message.error is not None or not message.content or message.usage is None:
        return None
    for block in message.content:
        if block.type == "tool_use":
            return None
    reason = _USUAL_ENDS.get(message.stop_reason or "")
    usage = usage_in(message) if message.usage.iterations else usage_of(message.usage)
    return None if reason is None else ParsedResponse(body, message.model, reason, usage)


class VendorForwarder(MessagesForwarder):
    def __init__(self, adapter: AnthropicAdapter) -> None:
        super().__init__(adapter)
        self._endpoint = adapter.endpoint

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._endpoint(credentials)
        model = credentials.extra.get("deployment", "") or request.model
        headers = {**endpoint.headers, **dict(request.headers)} if request.headers else endpoint.headers
        return UpstreamRequest("POST", endpoint.url, headers, with_model(marked(request), model, request.body_model))

    # The function itself: a method would be one more call.
    conforming = staticmethod(_conforming)


def _parsed(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    message = read_message(body, provider=provider)
    usage = usage_in(message, request.model)
    finish = _finish(message.stop_reason, message.content or [], provider=provider)
    found = _given_in(message, may_compare=find(request.body, _COMPARES) >= 0)
    return ParsedResponse(body, message.model or request.model, finish, usage, given=found)


def _given_in(message: Message, *, may_compare: bool) -> tuple[Given, ...]:
    found = given_in_object(Kept.CONTAINER, message.container)
    return found + given(Kept.RESPONSE, message.id) if may_compare else found


class MessagesRelay(MessagesEvents):
    """Passes the events of a stream on as they come, and reads usage, end and failure from them."""

    has_plain = True
    may_compare = False
    _blocks = 0
    _tools = False

    def _plain_text(self, data: bytes) -> str:
        event = self._parser.single(data, _DELTA_BEGINS)
        if not event:
            return ""
        try:
            read = _decode_conforming(event)
            if not event.isascii():
                event.decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""
        return (read.delta.text or "") if read.type == "content_block_delta" and read.delta is not None else ""

    def _event(self, event: ServerSentEvent, out: list[StreamEvent]) -> None:
        read = self._decoded(event)
        self._seen = True
        if read.type == "error" or event.event == "error" or (not read.type and read.error is not None):
            raise reported_failure(read.error, provider=self.provider)
        self._note(read)
        delta = read.delta
        is_delta = delta is not None and read.type == "content_block_delta"
        out.append(
            StreamEvent(
                framed(event),
                is_delta or (read.content_block is not None and read.content_block.type != "text"),
                (delta.text or "") if is_delta and delta is not None else "",
            )
        )

    def _note(self, read: Event) -> None:
        match read.type:
            case "message_start" if read.message is not None:
                self.model = read.message.model or self.model
                self._count(read.message.usage)
                self.given += _given_in(read.message, may_compare=self.may_compare)
            case "content_block_start" if read.content_block is not None:
                self._blocks += 1
                self._tools = self._tools or read.content_block.type == "tool_use"
                if read.content_block.type == "fallback":
                    self._turn.note(read.content_block.trigger)
            case "message_delta":
                self._note_delta(read)
                if read.delta is not None:
                    self.given += given_in_object(Kept.CONTAINER, read.delta.container)
            case "message_stop":
                self._stop()

    def _last_events(self, out: list[StreamEvent]) -> None:
        self._finish(called_tools=self._tools, has_content=self._blocks > 0)


def _finish(stop_reason: str | None, blocks: list[Block], *, provider: str) -> str:
    called_tools = False
    # The generator of `any` would cost more than the loop.
    for block in blocks:
        if block.type == "tool_use":
            called_tools = True
    return finish_reason(stop_reason, called_tools=called_tools, has_content=bool(blocks), provider=provider)


HOSTS = (AnthropicAdapter(TRAITS), FoundryAdapter())
FORWARDERS = {adapter.provider: VendorForwarder(adapter) for adapter in HOSTS}


class _Count(msgspec.Struct):
    input_tokens: int


_decode_count = msgspec.json.Decoder(_Count).decode


class CountForwarder(VendorForwarder):
    """A native adapter (`providers/native.py`) of the count of tokens. Its answers are no chat completions."""

    # A request to count has no place for parameters of an answer.
    parameters = frozenset()

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        built = super().build_request(request, credentials)
        return msgspec.structs.replace(built, url=f"{built.url}/count_tokens")

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return parse_count(request, body, provider=self.provider)

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return answer


def parse_count(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    """Returns the answer, which is passed on as it came. Raises ProviderError(UNUSABLE) when it holds no count."""
    try:
        _decode_count(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unusable("the answer is not a count of tokens", provider) from error
    return ParsedResponse(body, request.model, "", Usage())


COUNTERS = {adapter.provider: CountForwarder(adapter) for adapter in HOSTS}
