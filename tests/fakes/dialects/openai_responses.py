"""A fake of the Responses API as OpenAI, Azure and xAI serve it: it refuses fields that the API does not have, results
without their calls, and reasoning that it did not write.

The names of fields are those of the official SDK (https://developers.openai.com/api/reference/resources/responses).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from openai.types.responses import (
    EasyInputMessageParam,
    FunctionToolParam,
    ResponseCustomToolCallOutputParam,
    ResponseCustomToolCallParam,
    ResponseFunctionToolCallParam,
    ResponseInputFileParam,
    ResponseInputImageParam,
    ResponseInputTextParam,
    ResponseOutputMessageParam,
    ResponseReasoningItemParam,
)
from openai.types.responses.custom_tool_param import CustomToolParam
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_input_item_param import FunctionCallOutput
from openai.types.shared_params import Reasoning

from integrations.providers.base import Credentials
from integrations.providers.usage import Usage
from tests.fakes.dialects import client_tools
from tests.fakes.dialects.rules import responses as rules
from tests.fakes.dialects.rules.table import Request
from tests.fakes.dialects.story import Call, Can, ReadRequest, Reply, Story, Streamed

CREATED = 1_760_000_000
ENCRYPTED = "gAAAA-"
"""Encrypted reasoning of the fake begins so; any other is refused."""
_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
_KEYS = {"openai": "sk-canary-4f9a1c77e2", "azure_openai": "canary0azure0key0c41d8", "xai": "xai-canary8f2a9c77"}
# The last one stands for what OpenAI will have tomorrow. `client_metadata`, and this field of items, are what the
# vendor's own Codex sends (https://github.com/openai/codex).
_FIELDS = {*ResponseCreateParamsBase.__annotations__, "stream", "client_metadata", "a_field_of_tomorrow"}
_OF_CODEX = "internal_chat_message_metadata_passthrough"
_ITEMS: Mapping[str, set[str]] = {
    # An item of the vendor's comes back whole.
    "message": {*EasyInputMessageParam.__annotations__, *ResponseOutputMessageParam.__annotations__},
    "reasoning": {*ResponseReasoningItemParam.__annotations__},
    "function_call": {*ResponseFunctionToolCallParam.__annotations__},
    "function_call_output": {*FunctionCallOutput.__annotations__},
    "custom_tool_call": {*ResponseCustomToolCallParam.__annotations__, "status"},
    "custom_tool_call_output": {*ResponseCustomToolCallOutputParam.__annotations__},
    "item_reference": {"type", "id"},
    **client_tools.ITEMS,
}
_PARTS: Mapping[str, set[str]] = {
    "input_text": {*ResponseInputTextParam.__annotations__},
    "input_image": {*ResponseInputImageParam.__annotations__},
    "input_file": {*ResponseInputFileParam.__annotations__},
    "output_text": {"type", "text", "annotations", "logprobs"},
    "refusal": {"type", "refusal"},
}
_TOOLS: Mapping[str, set[str]] = {
    "function": {*FunctionToolParam.__annotations__},
    "custom": {*CustomToolParam.__annotations__},
    **client_tools.TOOLS,
}
_MIN_OUTPUT_TOKENS = 16


class ResponsesFake:
    """A story's signature is its encrypted reasoning."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.can = Can(signatures=True)

    def credentials(self, base_url: str) -> Credentials:
        path = "" if self.provider == "azure_openai" else "/v1"
        return Credentials(1, self.provider, f"{base_url}{path}", _KEYS[self.provider])

    def whole(self, story: Story) -> Reply:
        return Reply(200, _JSON, json.dumps(_response(story), ensure_ascii=False).encode())

    def stream(self, story: Story) -> Streamed:
        last = "response.incomplete" if story.finish in ("length", "content_filter") else "response.completed"
        events = [*self._begun(story), {"type": last, "response": _response(story)}]
        return Streamed(_EVENTS, tuple(_framed(events)))

    def failure(self, status: int, message: str, *, retry_after: int | None = None) -> Reply:
        headers = dict(_JSON) if retry_after is None else {**_JSON, "retry-after": str(retry_after)}
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return Reply(status, headers, json.dumps({"error": error}, ensure_ascii=False).encode())

    def stream_failure(self, story: Story, message: str) -> Streamed:
        failed = {**_response(Story(model=story.model, id=story.id)), "status": "failed"}
        failed["error"] = {"code": "server_error", "message": message}
        begun = self._begun(story) if story != Story() else []
        return Streamed(_EVENTS, tuple(_framed([*begun, {"type": "response.failed", "response": failed}])))

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> ReadRequest:
        fields = json.loads(body)
        assert urlsplit(path).path == ("/openai" if self.provider == "azure_openai" else "") + "/v1/responses", path
        assert not urlsplit(path).query or self.provider == "azure_openai", path
        if self.provider != "xai":
            rules.RESPONSES.check(Request(fields, str(fields.get("model")), headers))
        _known(fields, _FIELDS, "")
        _check_parameters(fields)
        reader = _Reader(stored=fields.get("store") is not False)
        reader.read(fields["input"])
        form = (fields.get("text") or {}).get("format") or {}
        return ReadRequest(
            model=str(fields["model"]),
            stream=fields.get("stream") is True,
            system="\n".join(reader.system),
            turns=tuple(reader.turns),
            images=tuple(reader.images),
            documents=tuple(reader.documents),
            tools=_tool_names(client_tools.tools_of(fields)),
            calls=tuple(reader.calls),
            results=tuple(reader.results),
            tool_choice=_tool_choice(fields.get("tool_choice")),
            schema=form.get("schema"),
            max_tokens=fields.get("max_output_tokens"),
            temperature=fields.get("temperature"),
            top_p=fields.get("top_p"),
            signatures=tuple(reader.signatures),
            secret=headers["api-key"] if self.provider == "azure_openai" else headers["authorization"].split()[1],
        )

    def _begun(self, story: Story) -> list[dict[str, Any]]:
        begun = {**_response(Story(model=story.model, id=story.id)), "status": "in_progress", "usage": None}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
        for index, item in enumerate(_output(story)):
            events += _events_of(item, index, story.pieces)
        return events


def _response(story: Story) -> dict[str, Any]:
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = reasons.get(story.finish)
    return {
        "id": f"resp_{story.id}",
        "object": "response",
        "created_at": CREATED,
        "status": "completed" if reason is None else "incomplete",
        "error": None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "instructions": None,
        "metadata": {},
        "model": story.model,
        "output": _output(story),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": _usage(story.usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


def _output(story: Story) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if story.reasoning or story.signature:
        summary = [{"type": "summary_text", "text": story.reasoning}] if story.reasoning else []
        hidden = {"encrypted_content": ENCRYPTED + story.signature} if story.signature else {}
        items.append({"id": f"rs_{story.id}", "type": "reasoning", "summary": summary, **hidden})
    if story.text:
        part = {"type": "output_text", "text": story.text, "annotations": [], "logprobs": []}
        items.append(
            {"id": f"msg_{story.id}", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
        )
    items += [client_tools.item_of(call) for call in story.calls]
    return items


def _events_of(item: Mapping[str, Any], index: int, pieces: int) -> Iterator[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": index}
    empty: Mapping[str, dict[str, Any]] = {
        "reasoning": {"summary": []},
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
        "tool_search_call": {},
    }
    hidden = {"encrypted_content": None} if item["type"] == "reasoning" else {"status": "in_progress"}
    begun = {**item, **empty[item["type"]], **hidden}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    match item["type"]:
        case "reasoning":
            for number, part in enumerate(item["summary"]):
                where = {**place, "summary_index": number}
                yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
                for piece in _cut(part["text"], pieces):
                    yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece}
                yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
                yield {"type": "response.reasoning_summary_part.done", **where, "part": part}
        case "message":
            part = item["content"][0]
            where = {**place, "content_index": 0}
            yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
            for piece in _cut(part["text"], pieces):
                yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **where, "part": part}
        case "function_call":
            for piece in _cut(item["arguments"], pieces):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **place, **done}
        case "custom_tool_call":
            for piece in _cut(item["input"], pieces):
                yield {"type": "response.custom_tool_call_input.delta", **place, "delta": piece}
            yield {"type": "response.custom_tool_call_input.done", **place, "input": item["input"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _framed(events: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    for number, event in enumerate(events):
        data = json.dumps({**event, "sequence_number": number}, ensure_ascii=False)
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()


def _cut(text: str, count: int) -> Iterator[str]:
    size = -(-len(text) // count) or 1
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _known(fields: Mapping[str, Any], names: set[str], place: str) -> None:
    unknown = sorted(fields.keys() - names)
    assert not unknown, f"Unknown parameter: '{place}{unknown[0]}'."


def _check_parameters(fields: Mapping[str, Any]) -> None:
    limit = fields.get("max_output_tokens")
    assert limit is None or limit >= _MIN_OUTPUT_TOKENS, "Invalid 'max_output_tokens': integer below minimum value"
    reasoning = fields.get("reasoning") or {}
    _known(reasoning, {*Reasoning.__annotations__}, "reasoning.")
    form = (fields.get("text") or {}).get("format") or {}
    assert form.get("type") in (None, "text", "json_object", "json_schema"), "Invalid value: 'text.format.type'"
    if form.get("type") == "json_schema":
        assert form.get("name") and isinstance(form.get("schema"), dict), "Missing required parameter: 'text.format'"
        if form.get("strict"):
            _check_strict(form["schema"], "text.format.schema")


def _check_strict(schema: Mapping[str, Any], place: str) -> None:
    """Checks an object of a strict schema (https://platform.openai.com/docs/guides/structured-outputs)."""
    if schema.get("type") == "object":
        assert schema.get("additionalProperties") is False, f"Invalid schema for {place}: 'additionalProperties'"
        properties = schema.get("properties") or {}
        assert {*properties} == {*(schema.get("required") or ())}, f"Invalid schema for {place}: 'required'"


def _tool_names(tools: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    for place, tool in enumerate(tools):
        _check_tool(tool, f"tools[{place}]")
    return tuple(name for name, _, _ in client_tools.with_names(tools))


def _check_tool(tool: Mapping[str, Any], where: str) -> None:
    kind = str(tool.get("type"))
    assert kind in _TOOLS, f"Invalid value: '{where}.type'"
    if kind in ("function", "custom", "namespace"):
        assert tool.get("name"), f"Missing required parameter: '{where}.name'."
    _known(tool, _TOOLS[kind], f"{where}.")
    if kind == "function":
        assert "parameters" in tool, f"Missing required parameter: '{where}.parameters'."
        # Schemas of functions that say nothing of `strict` are made strict by the vendor
        # (https://developers.openai.com/api/docs/guides/function-calling#strict-mode).
        if tool.get("strict"):
            _check_strict(tool["parameters"], f"{where}.parameters")
    for place, inner in enumerate(tool.get("tools") or ()):
        _check_tool(inner, f"{where}.tools[{place}]")


def _tool_choice(choice: Any) -> str:
    if choice is None or isinstance(choice, str):
        return choice or ""
    _known(choice, {"type", "name", "mode", "tools"}, "tool_choice.")
    return f"{choice['type']}:{choice['name']}" if "name" in choice else str(choice["type"])


@dataclass
class _Reader:
    """`stored`: the vendor keeps the response."""

    stored: bool
    system: list[str] = field(default_factory=list)
    turns: list[tuple[str, str]] = field(default_factory=list)
    images: list[tuple[str, bytes | str]] = field(default_factory=list)
    documents: list[tuple[str, bytes | str]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)

    def read(self, items: Any) -> None:
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        for number, item in enumerate(items):
            kind = item.get("type", "message")
            assert kind in _ITEMS, f"Invalid value: 'input[{number}].type'"
            _known(item, {*_ITEMS[kind], _OF_CODEX}, f"input[{number}].")
            getattr(self, f"_{kind}")(item)
        for number, item in enumerate(items):
            if item.get("type") == "reasoning":
                following = items[number + 1] if number + 1 < len(items) else {}
                # "Item 'rs_…' of type 'reasoning' was provided without its required following item."
                is_answer = following.get("role") == "assistant" or str(following.get("type")).endswith("_call")
                assert is_answer or following.get("type") == "reasoning", "reasoning without its following item"
        answered = {call_id for call_id, _ in self.results}
        for call in self.calls:
            assert call.id in answered, f"No tool output found for function call {call.id}."

    def _message(self, item: Mapping[str, Any]) -> None:
        role = item["role"]
        text = self._text(item["content"], is_output=role == "assistant")
        if role in ("system", "developer"):
            self.system.append(text)
        else:
            assert role in ("user", "assistant"), f"Invalid value: '{role}'"
            self.turns.append((role, text))

    def _reasoning(self, item: Mapping[str, Any]) -> None:
        hidden = str(item.get("encrypted_content") or "")
        assert hidden or self.stored, f"Item '{item.get('id')}' not found. Items are not persisted when store is false."
        assert isinstance(item["summary"], list), "Invalid type for 'summary'"
        assert not hidden or hidden.startswith(ENCRYPTED), "The encrypted content could not be verified."
        self.signatures.append(hidden.removeprefix(ENCRYPTED))

    def _item_reference(self, item: Mapping[str, Any]) -> None:
        assert self.stored, f"Item with id '{item['id']}' not found. Items are not persisted when store is false."

    def _function_call(self, item: Mapping[str, Any]) -> None:
        where = f"{item['namespace']}__" if item.get("namespace") else ""
        self.calls.append(Call(item["call_id"], f"{where}{item['name']}", json.loads(item["arguments"])))

    def _tool_search_call(self, item: Mapping[str, Any]) -> None:
        self.calls.append(Call(item["call_id"], client_tools.SEARCH, item["arguments"]))

    def _tool_search_output(self, item: Mapping[str, Any]) -> None:
        self.results.append((item["call_id"], json.dumps(item["tools"])))

    def _additional_tools(self, item: Mapping[str, Any]) -> None:
        """Its tools are read with the request's own."""

    def _custom_tool_call(self, item: Mapping[str, Any]) -> None:
        self.calls.append(Call(item["call_id"], item["name"], {"input": item["input"]}))

    def _function_call_output(self, item: Mapping[str, Any]) -> None:
        call_id = item["call_id"]
        known = any(call.id == call_id for call in self.calls)
        assert known, f"No tool call found for function call output with call_id {call_id}."
        self.results.append((call_id, self._text(item["output"], is_output=False)))

    _custom_tool_call_output = _function_call_output

    def _text(self, content: Any, *, is_output: bool) -> str:
        if isinstance(content, str):
            return content
        return "".join(self._part(part, is_output=is_output) for part in content)

    def _part(self, part: Mapping[str, Any], *, is_output: bool) -> str:
        kind = part["type"]
        allowed = ("output_text", "refusal") if is_output else ("input_text", "input_image", "input_file")
        assert kind in allowed, f"Invalid value: '{kind}'. Supported values are: {', '.join(allowed)}."
        _known(part, _PARTS[kind], "content.")
        match kind:
            case "input_image":
                self.images.append(_medium(part["image_url"]))
            case "input_file":
                self.documents.append(_medium(part["file_data"]))
        return str(part.get("text") or part.get("refusal") or "")


def _medium(url: str) -> tuple[str, bytes | str]:
    if not url.startswith("data:"):
        return "url", url
    head, _, data = url[5:].partition(",")
    try:
        return head.partition(";")[0], base64.b64decode(data, validate=True)
    except ValueError as error:
        raise AssertionError("no base64") from error


RESPONSES = {provider: ResponsesFake(provider) for provider in _KEYS}
