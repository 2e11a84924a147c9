"""OpenAI's `functions` and `function_call`, the forerunners of tools, for providers that know only tools
(https://platform.openai.com/docs/api-reference/chat/create#chat-create-functions).

The request is sent with tools; the answer comes back with `function_call`, which holds one call, as the client expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import (
    Adapter,
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    PassingAdapter,
    StreamEvent,
    StreamTranslator,
    Traits,
    UpstreamRequest,
)
from integrations.providers.common.search import find
from integrations.providers.errors import ProviderError, UnsupportedParameterError
from integrations.providers.given import Given
from integrations.providers.openai.shapes import made_up_id
from integrations.providers.usage import Usage

Fields = dict[str, Any]

# A body without the word `function` has neither `functions` nor `function_call`.
_MARK = b"function"
_CALLS = b'"tool_calls"'
_PARALLEL = "parallel_tool_calls"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class LegacyFunctions:
    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.provider = adapter.provider
        self._passes_direct = adapter.traits.functions == "direct"

    @property
    def traits(self) -> Traits:
        return self.adapter.traits

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        if self._may_concern(request):
            request = with_tools(request, provider=self.provider)
        return self.adapter.needs(request, credentials)

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        if not self._may_concern(request):
            return self.adapter.build_request(request, credentials)
        translated = with_tools(request, provider=self.provider)
        upstream = self.adapter.build_request(translated, credentials)
        if translated is request or _PARALLEL in request.fields:
            return upstream
        # The gateway has set `parallel_tool_calls` and not the client, so the client needs no warning about it.
        warnings = tuple(warning for warning in upstream.warnings if not warning.startswith(_PARALLEL))
        return msgspec.structs.replace(upstream, warnings=warnings)

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        if not self._may_concern(request):
            return self.adapter.parse_response(request, body)
        translated = with_tools(request, provider=self.provider)
        answer = self.adapter.parse_response(translated, body)
        return _with_function_call(answer) if _wants_functions(request, translated) else answer

    def stream(self, request: ChatRequest) -> StreamTranslator:
        if not self._may_concern(request):
            return self.adapter.stream(request)
        translated = with_tools(request, provider=self.provider)
        stream = self.adapter.stream(translated)
        return FunctionStream(stream) if _wants_functions(request, translated) else stream

    def classify_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return self.adapter.classify_failure(status, headers, body)

    def _may_concern(self, request: ChatRequest) -> bool:
        """True if the request may have functions, with false positives only. The bytes are searched last."""
        return (request.crosses_vendor or not self._passes_direct) and find(request.body, _MARK) >= 0


class PassingFunctions(LegacyFunctions):
    def __init__(self, adapter: PassingAdapter) -> None:
        super().__init__(adapter)
        self._passing = adapter
        self.marks = adapter.marks if self._passes_direct else (*adapter.marks, _MARK)
        self.conforming = adapter.conforming

    def forwarded(self, request: ChatRequest) -> bytes | None:
        return None if self._may_concern(request) else self._passing.forwarded(request)


def with_functions(adapter: Adapter) -> LegacyFunctions:
    return PassingFunctions(adapter) if isinstance(adapter, PassingAdapter) else LegacyFunctions(adapter)


def with_tools(request: ChatRequest, *, provider: str) -> ChatRequest:
    fields = request.fields
    if not (
        "functions" in fields
        or "function_call" in fields
        or any(message.get("role") == "function" or "function_call" in message for message in fields["messages"])
    ):
        return request
    made = {name: value for name, value in fields.items() if name not in ("functions", "function_call")}
    made["messages"] = _messages(fields["messages"], provider)
    functions = fields.get("functions") or ()
    if not isinstance(functions, (list, tuple)):
        raise UnsupportedParameterError("functions", "expected a list", provider=provider)
    if functions:
        made["tools"] = [*(fields.get("tools") or ()), *({"type": "function", "function": one} for one in functions)]
        if not fields.get("tools"):
            made.setdefault(_PARALLEL, False)  # The answer has room for one call only.
    choice = _tool_choice(fields.get("function_call"), provider)
    if choice is not None and made.get("tools") and made.get("tool_choice") is None:
        made["tool_choice"] = choice
    elif isinstance(choice, Mapping) and not made.get("tools"):
        raise UnsupportedParameterError("function_call", "names a function where there are none", provider=provider)
    return msgspec.structs.replace(request, body=_encode(made), fields=made)


def _wants_functions(request: ChatRequest, translated: ChatRequest) -> bool:
    return translated is not request and bool(request.fields.get("functions")) and not request.fields.get("tools")


def _tool_choice(function_call: Any, provider: str) -> Any:
    if function_call is None or function_call in ("none", "auto"):
        return function_call
    name = function_call.get("name") if isinstance(function_call, Mapping) else None
    if not isinstance(name, str) or not name:
        raise UnsupportedParameterError("function_call", "expected none, auto or the name of one", provider=provider)
    return {"type": "function", "function": {"name": name}}


def _messages(messages: list[Any], provider: str) -> list[Any]:
    """Call ids follow from the places of the calls, so that they stay the same on every later turn."""
    made = []
    waiting: dict[str, str] = {}  # `waiting` maps a function to the id of its call that has no result yet.
    for index, message in enumerate(messages):
        if message.get("role") == "function":
            name = str(message.get("name") or "")
            made.append(_result(message, waiting.pop(name, ""), index))
        elif "function_call" in message:
            call_id = made_up_id("function", index, 0)
            made.append(_call(message, call_id, f"messages[{index}].function_call", provider, waiting))
        else:
            made.append(message)
    return made


def _result(message: Mapping[str, Any], call_id: str, index: int) -> Fields:
    """The result's name shows the function if the call itself is missing."""
    content = message.get("content")
    made = {**message, "role": "tool", "content": "" if content is None else content}
    if call_id:
        made.pop("name", None)
    return {**made, "tool_call_id": call_id or made_up_id("function", index, 0)}


def _call(message: Mapping[str, Any], call_id: str, where: str, provider: str, waiting: dict[str, str]) -> Fields:
    made = {name: value for name, value in message.items() if name != "function_call"}
    call = message["function_call"]
    if call is None or message.get("tool_calls"):
        return made
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise UnsupportedParameterError("messages", f"{where}: a call needs a name", provider=provider)
    function = {"name": call["name"], "arguments": call.get("arguments") or "{}"}
    made["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
    waiting[call["name"]] = call_id
    return made


def _with_function_call(answer: ParsedResponse) -> ParsedResponse:
    if _CALLS not in answer.body:
        return answer
    body = _decode(answer.body)
    for choice in body["choices"]:
        calls = choice["message"].pop("tool_calls", None)
        if calls:
            choice["message"]["function_call"] = calls[0]["function"]
        choice["finish_reason"] = _reason(choice["finish_reason"])
    return msgspec.structs.replace(answer, body=_encode(body), finish_reason=_reason(answer.finish_reason))


def _reason(reason: Any) -> Any:
    return "function_call" if reason == "tool_calls" else reason


class FunctionStream:
    has_plain = False

    __slots__ = ("_stream",)

    def __init__(self, stream: StreamTranslator) -> None:
        self._stream = stream

    @property
    def usage(self) -> Usage | None:
        return self._stream.usage

    @usage.setter
    def usage(self, usage: Usage | None) -> None:
        self._stream.usage = usage

    @property
    def model(self) -> str:
        return self._stream.model

    @model.setter
    def model(self, model: str) -> None:
        self._stream.model = model

    @property
    def given(self) -> tuple[Given, ...]:
        return self._stream.given

    @property
    def finish_reason(self) -> str:
        return str(_reason(self._stream.finish_reason))

    @finish_reason.setter
    def finish_reason(self, reason: str) -> None:
        self._stream.finish_reason = reason

    def feed(self, data: bytes) -> list[StreamEvent]:
        return [made for event in self._stream.feed(data) if (made := _event(event)) is not None]

    def plain(self, data: bytes) -> str:
        return ""

    def closing(self) -> list[StreamEvent]:
        return [made for event in self._stream.closing() if (made := _event(event)) is not None]


def _event(event: StreamEvent) -> StreamEvent | None:
    if _CALLS not in event.data:
        return event
    chunk = _decode(event.data)
    left = [choice for choice in chunk["choices"] if _converted(choice)]
    if not left:
        return None
    chunk["choices"] = left
    return StreamEvent(_encode(chunk), event.has_output, event.text)


def _converted(choice: Fields) -> bool:
    delta = choice["delta"]
    deltas = delta.pop("tool_calls", None)
    choice["finish_reason"] = reason = _reason(choice.get("finish_reason"))
    for call in deltas or ():
        if call["index"] == 0:
            delta["function_call"] = call["function"]
    return bool(delta) or reason is not None or deltas is None
