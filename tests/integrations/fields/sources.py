"""The fields of each SDK's request types, each as a pair of chat-completion requests that differ in it alone.

A client speaks OpenAI's dialect and may add the vendor's own features: fields under the vendor's names, content parts
and tools in the vendor's form. The fields of the other SDKs' types are sent like this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NotRequired, TypedDict, get_type_hints

import botocore.session
from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_message_create_params
from cohere.v2.client import V2Client
from google.genai.types import GenerateContentConfig, Part
from mistralai.client.models import ChatCompletionRequest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from tests.integrations.fields.probes import ABSENT, SCHEMA, Probe, inside, minimal, values
from tests.integrations.fields.shapes import (
    Either,
    Field,
    ListOf,
    Record,
    Shape,
    botocore_shape,
    fields_of,
    options_of,
    parameters_shape,
    shape_of,
)

Json = dict[str, Any]

USER: Json = {"role": "user", "content": "Hello"}
TEXT: Json = {"type": "text", "text": "Look"}
CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
TOOLS: list[Json] = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("get_weather", "get_time")
]
# Some fields have an effect only beside certain other fields.
_BESIDE: Mapping[str, Json] = {
    "tool_choice": {"tools": TOOLS},
    "toolConfig": {"tools": TOOLS},
    "parallel_tool_calls": {"tools": TOOLS},
    "strict_tools": {"tools": TOOLS},
    "function_call": {"functions": [tool["function"] for tool in TOOLS]},
    "stream_options": {"stream": True},
    "top_logprobs": {"logprobs": True},
    "audio": {"modalities": ["text", "audio"]},
}
_RESPONSES_TOOLS = [{"type": "function", **tool["function"]} for tool in TOOLS]
# The SDKs keep some fields to themselves, and others concern the request's address or the transport of its answer.
_NOT_SENT = frozenset(
    {"model", "modelId", "stream", "httpOptions", "shouldReturnHttpResponse", "automaticFunctionCalling"}
)


class _Thinking(TypedDict):
    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: NotRequired[int]


class Own(TypedDict, total=False):
    """The fields that the gateway adds to OpenAI's own (docs/chat-completions.md#the-request)."""

    thinking: _Thinking


@dataclass(frozen=True)
class Case:
    """Two requests that differ in one field: the second has it, or another value of it. `surface` is the client's
    protocol."""

    source: str
    path: str
    before: Json
    after: Json
    has_no_effect: bool = False
    surface: str = "chat"


@cache
def cases_of(source: str) -> tuple[Case, ...]:
    found: dict[str, Case] = {}
    for case in _SOURCES[source]():
        if case.before != case.after:
            found.setdefault(case.path, case)
    return tuple(found.values())


def sources() -> tuple[str, ...]:
    return tuple(_SOURCES)


def _openai() -> Iterator[Case]:
    for record in (shape_of(CompletionCreateParamsBase), shape_of(Own)):
        yield from _parameters("openai", _record(record))
    messages = fields_of(_record(shape_of(CompletionCreateParamsBase)))["messages"].shape
    yield from _messages("openai", messages)


def _mistral() -> Iterator[Case]:
    record = _record(shape_of(ChatCompletionRequest))
    yield from _parameters("mistral", record)
    yield from _messages("mistral", fields_of(record)["messages"].shape)


def _cohere() -> Iterator[Case]:
    hints = get_type_hints(V2Client.chat)
    record = parameters_shape(
        "chat", {name: hints[name] for name in hints if name not in ("request_options", "return")}
    )
    yield from _parameters("cohere", record)
    yield from _messages("cohere", fields_of(record)["messages"].shape)


def _anthropic() -> Iterator[Case]:
    yield from _anthropics("anthropic", message_create_params.MessageCreateParamsBase)


def _anthropic_beta() -> Iterator[Case]:
    yield from _anthropics("anthropic_beta", beta_message_create_params.MessageCreateParamsBase)


def _anthropics(source: str, hint: Any) -> Iterator[Case]:
    record = _record(shape_of(hint))
    yield from _parameters(source, record)
    messages = _items(fields_of(record)["messages"].shape)
    for message in options_of(messages):
        content = fields_of(_record(message))["content"].shape
        blocks = next(_items(option) for option in options_of(content) if isinstance(option, ListOf))
        role = minimal(fields_of(_record(message))["role"].shape)
        if role in ("user", "assistant"):
            yield from _parts(source, blocks, role)


def _google() -> Iterator[Case]:
    yield from _parameters("google", _record(shape_of(GenerateContentConfig)))
    part = _record(shape_of(Part))
    # A part holds one object, and further fields about it stand beside it.
    for role in ("user", "assistant"):
        yield from _parts("google", part, role, together={"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}})


def _bedrock() -> Iterator[Case]:
    model = botocore.session.Session().get_service_model("bedrock-runtime").operation_model("Converse")
    assert model.input_shape is not None
    record = _record(botocore_shape(model.input_shape))
    yield from _parameters("bedrock", record)
    message = _record(_items(record.fields["messages"].shape))
    for role in ("user", "assistant"):
        yield from _parts("bedrock", _items(message.fields["content"].shape), role)


def _responses() -> Iterator[Case]:
    """Yields the parameters of the Responses API, as its clients send them."""
    for name, field in fields_of(_record(shape_of(ResponseCreateParamsBase))).items():
        if name in _NOT_SENT or name in ("input", "tools"):
            continue
        beside = {"input": "Hello", **({"tools": _RESPONSES_TOOLS} if name == "tool_choice" else {})}
        for probe in _probes(name, field):
            before = {} if probe.before is ABSENT else {name: probe.before}
            after = {**beside, name: probe.after}
            nothing = probe.after is False or probe.after in ({}, [])
            yield Case("responses", probe.path, {**beside, **before}, after, nothing, "responses")


def _assistants_blocks() -> Iterator[Case]:
    """Yields the blocks of an assistant's message, as clients of the Messages API send them back."""
    record = _record(shape_of(beta_message_create_params.MessageCreateParamsBase))
    for message in options_of(_items(fields_of(record)["messages"].shape)):
        if minimal(fields_of(_record(message))["role"].shape) != "assistant":
            continue
        content = fields_of(_record(message))["content"].shape
        for block in options_of(next(_items(option) for option in options_of(content) if isinstance(option, ListOf))):
            kind = str(minimal(fields_of(_record(block))["type"].shape))
            yield Case("messages", f"content[{kind}]", _answered([]), _answered([_full(block)]), surface="messages")


def _full(block: Shape) -> Any:
    """Returns the block with the first value of each field."""
    made = dict(minimal(block))
    for name, field in fields_of(_record(block)).items():
        if name not in made and (found := next(iter(values(field.shape, name)), None)) is not None:
            made[name] = found[1]
    return made


def _answered(blocks: list[Any]) -> Json:
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}, *blocks]}
    return {"max_tokens": 100, "messages": [USER, answer, USER]}


_SOURCES = {
    "responses": _responses,
    "messages": _assistants_blocks,
    "openai": _openai,
    "anthropic": _anthropic,
    "anthropic_beta": _anthropic_beta,
    "google": _google,
    "bedrock": _bedrock,
    "mistral": _mistral,
    "cohere": _cohere,
}


def _parameters(source: str, record: Record) -> Iterator[Case]:
    for name, field in fields_of(record).items():
        if name in _NOT_SENT or name == "messages":
            continue
        beside = {"messages": [USER], **_BESIDE.get(name, {})}
        for probe in _probes(name, field):
            before = {} if probe.before is ABSENT else {name: probe.before}
            nothing = _is_nothing(name, probe)
            yield Case(source, probe.path, {**beside, **before}, {**beside, name: probe.after}, nothing)


def _is_nothing(name: str, probe: Probe) -> bool:
    """Returns True when the value has no effect; a search is requested even by an empty object."""
    return probe.after is False or (probe.after == {} and name != "web_search_options")


def _probes(name: str, field: Field) -> Iterator[Probe]:
    for label, value in values(field.shape, name):
        yield Probe(f"{name}{label}", ABSENT, value)
    for probe in inside(field.shape, name):
        yield Probe(f"{name}{probe.path}", probe.before, probe.after)


def _messages(source: str, shape: Shape) -> Iterator[Case]:
    """Yields messages of the dialect that the client speaks, each in a conversation where it may stand."""
    for message in options_of(_items(shape)):
        record = _record(message)
        role = str(minimal(fields_of(record)["role"].shape))
        path = f"messages[{role}]"
        yield Case(source, path, {"messages": [USER]}, _conversation(minimal(record)))
        for probe in inside(record):
            yield Case(source, path + probe.path, _conversation(probe.before), _conversation(probe.after))


def _parts(source: str, shape: Shape, role: str, together: Json | None = None) -> Iterator[Case]:
    """Yields content parts in a vendor's own form."""

    def request(*parts: Any) -> Json:
        whole = [{**(together or {}), **part} for part in parts]
        typed = [part if "type" in part else {"type": next(iter(part)), **part} for part in whole]
        return _conversation({"role": role, "content": [TEXT, *typed]})

    path = f"messages[{role}].content"
    for label, part in values(shape):
        if part or not together:
            yield Case(source, path + label, request(), request(part))
    for probe in inside(shape):
        yield Case(source, path + probe.path, request(probe.before), request(probe.after))


def _conversation(message: Json) -> Json:
    match message["role"]:
        case "user":
            return {"messages": [message]}
        case "assistant":
            answer = {**({} if "refusal" in message else {"content": "Yes."}), **message}
            results = [{"role": "tool", "tool_call_id": call.get("id", ""), "content": "18"} for call in _calls(answer)]
            return {"messages": [USER, answer, *results, USER], **({"tools": TOOLS} if results else {})}
        case "tool":
            called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
            result = {"tool_call_id": "call_1", **message}
            return {"messages": [USER, called, result], "tools": TOOLS}
        case "function":
            called = {"role": "assistant", "content": None, "function_call": CALL["function"]}
            return {"messages": [USER, called, message]}
        case _:
            return {"messages": [message, USER]}


def _calls(message: Json) -> list[Json]:
    return [call for call in message.get("tool_calls") or () if isinstance(call, dict)]


def _record(shape: Shape) -> Record:
    assert isinstance(shape, Record), shape
    return shape


def _items(shape: Shape) -> Shape:
    if isinstance(shape, Either):
        shape = next(option for option in shape.options if isinstance(option, ListOf))
    assert isinstance(shape, ListOf), shape
    return shape.item
