"""Forwards requests of the Responses API as they came, and reads usage, end and failure from the answers
(https://platform.openai.com/docs/api-reference/responses)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from urllib.parse import unquote

import msgspec

from integrations.providers.base import (
    ChatRequest,
    Credentials,
    ParsedResponse,
    StreamEvent,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.common.endpoints import Endpoint
from integrations.providers.common.forwarder import Forwarder
from integrations.providers.common.forwarding import framed, with_model
from integrations.providers.common.search import find
from integrations.providers.common.sse import EventParser, ServerSentEvent
from integrations.providers.common.stream import DONE, DialectStream
from integrations.providers.errors import ProviderError, unusable
from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter
from integrations.providers.openai.azure import ADAPTER as AZURE
from integrations.providers.openai.compatible import ADAPTERS
from integrations.providers.openai.responses_chat import chat_completion, chat_frames, without_reasoning
from integrations.providers.openai.responses_shapes import (
    ENDS,
    Event,
    Response,
    calls_tools,
    conforming,
    decode_event,
    decode_response,
    failure_in,
    finish_reason,
    given_in,
    given_in_item,
    reported_failure,
    usage_of,
)

_PARAMETERS = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "temperature",
        "top_p",
        "user",
    }
)
_CHAT_PATH = "/chat/completions"
# A request with this field, also without an id, lets the next one name its answer.
_COMPARES = b"comparison_response_id"
_TEXT_BEGINS = b"event: response.output_text.delta\ndata: "
_decode_conforming = msgspec.json.Decoder(Event).decode
_TEXTS = frozenset({"response.output_text.delta", "response.refusal.delta"})
# Items of these types are announced before the model has written anything of them.
_GROWING = frozenset({"message", "reasoning"})


class ResponsesForwarder(Forwarder[OpenAIAdapter]):
    """A native adapter (`providers/native.py`) of the Responses API, with the headers of the provider's own adapter."""

    parameters = _PARAMETERS
    keeps_state = True

    def __init__(self, adapter: OpenAIAdapter) -> None:
        super().__init__(adapter)
        self._endpoint = adapter.endpoint

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        # Another vendor's encrypted reasoning is refused.
        body = without_reasoning(request.body) if request.crosses_vendor else request.body
        endpoint, model = self.destination(request.model, credentials)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, with_model(body, model, request.body_model))

    def destination(self, model: str, credentials: Credentials) -> tuple[Endpoint, str]:
        endpoint = self._endpoint(credentials)
        url, deployment = _address(endpoint.url)
        return Endpoint(url, endpoint.headers), credentials.extra.get("deployment", "") or deployment or model

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            response = decode_response(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unusable("the answer is not a response", self.provider) from error
        if failure := failure_in(response, provider=self.provider):
            failure.usage = usage_of(response)
            raise failure
        if response.output is None:
            raise unusable("the answer holds no output", self.provider)
        finish = finish_reason(response, called_tools=calls_tools(response.output))
        model = response.model if isinstance(response.model, str) else request.model
        found = given_in(response, may_compare=find(request.body, _COMPARES) >= 0)
        return ParsedResponse(body, model, finish, usage_of(response), given=found)

    # The function itself: a method would be one more call.
    conforming = staticmethod(conforming)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        relay = ResponsesRelay(model=request.model, provider=self.provider, redact=self._dialect.redact)
        relay.may_compare = find(request.body, _COMPARES) >= 0
        return relay

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return chat_frames(answer) if stream else chat_completion(answer)


@lru_cache(maxsize=1024)
def _address(url: str) -> tuple[str, str]:
    """The address of responses and the deployment in the address of chat completions, empty without one.

    Azure has responses only at its resource, whatever the layout
    (https://learn.microsoft.com/azure/ai-foundry/openai/how-to/responses).
    """
    base, _, query = url.partition("?")
    base = base.removesuffix(_CHAT_PATH)
    if not query:
        return f"{base}/responses", ""
    resource, _, deployment = base.partition("/openai/deployments/")
    named = "" if deployment.startswith("{") else unquote(deployment)
    return f"{resource.removesuffix('/models')}/openai/v1/responses", named


class ResponsesRelay(DialectStream[ServerSentEvent]):
    has_plain = True

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        super().__init__(EventParser(), model=model, provider=provider, redact=redact)
        self._calls_tools = False
        self._is_stored = True
        self.may_compare = False

    def _plain_text(self, data: bytes) -> str:
        event = self._parser.single(data, _TEXT_BEGINS)
        if not event:
            return ""
        try:
            read = _decode_conforming(event)
            if not event.isascii():
                event.decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""
        return read.delta if read.type in _TEXTS and isinstance(read.delta, str) else ""

    def _event(self, event: ServerSentEvent, out: list[StreamEvent]) -> None:
        if event.data == DONE:
            return
        try:
            read = decode_event(event.data)
            if not event.data.isascii():
                event.data.decode()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("an event of the stream is not one of the Responses API") from error
        self._seen = True
        if read.type == "error" or (not read.type and read.error is not None):
            error_object = read.error or {"code": read.code, "message": read.message}
            raise reported_failure(error_object, provider=self.provider)
        if read.type in _TEXTS:
            out.append(StreamEvent(framed(event), True, read.delta if isinstance(read.delta, str) else ""))
            return
        if read.response is not None:
            self._note(read.type, read.response)
        elif read.type == "response.output_item.done" and read.item is not None:
            self._calls_tools = self._calls_tools or calls_tools([read.item])
            self.given += given_in_item(read.item, is_stored=self._is_stored)
        out.append(StreamEvent(framed(event), _is_output(read)))

    def _note(self, kind: str, response: Response) -> None:
        if isinstance(response.model, str):
            self.model = response.model
        self.usage = usage_of(response) or self.usage
        self._is_stored = response.store is not False
        self.given += given_in(response, may_compare=self.may_compare)
        if failure := failure_in(response, provider=self.provider):
            raise failure
        if kind in ENDS:
            self._done = True
            called = self._calls_tools or calls_tools(response.output)
            self.finish_reason = finish_reason(response, called_tools=called)

    def _last_events(self, out: list[StreamEvent]) -> None:
        self._check_ended(self._done)


def _is_output(event: Event) -> bool:
    kind = event.type
    if kind == "response.output_item.added":
        return event.item is not None and event.item.type not in _GROWING
    return kind.endswith((".delta", ".done")) or "_call." in kind


# xAI documents the API at https://docs.x.ai/docs/guides/responses-api
SPEAKERS = (ADAPTER, AZURE, ADAPTERS["xai"])
FORWARDERS = {adapter.provider: ResponsesForwarder(adapter) for adapter in SPEAKERS}
