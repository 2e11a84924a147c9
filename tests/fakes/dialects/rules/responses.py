"""What OpenAI's Responses API refuses, and Azure's, which is the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from openai.types.responses.response_create_params import ResponseCreateParamsBase

from tests.fakes.dialects.rules.fields import unknown_fields
from tests.fakes.dialects.rules.openai import NAME, error, generation, path, reasons
from tests.fakes.dialects.rules.schemas import first_open, first_unfinished
from tests.fakes.dialects.rules.table import Found, Request, Rule, Table, only_mappings

_REPORTS = "https://github.com/"
_LEAST_TOKENS = 16
_MAX_ID_LENGTH = 64
_SAMPLING = ("temperature", "top_p", "top_logprobs")
# The last one stands for what OpenAI will have tomorrow.
_BESIDE_THE_TYPE = {"stream", "client_metadata", "a_field_of_tomorrow"}
# What the vendor's own Codex sends beside the SDK's fields, and `client_metadata`: https://github.com/openai/codex
_OF_CODEX = {
    "id",
    "internal_chat_message_metadata_passthrough",
    "external_web_access",
    "search_content_types",
    "status",
}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_CALLS = ("function_call", "custom_tool_call")


def _items(request: Request) -> list[tuple[int, Mapping[str, Any]]]:
    return only_mappings(request.body.get("input"))


def _functions(request: Request) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return ((index, tool) for index, tool in only_mappings(request.body.get("tools")) if tool.get("type") == "function")


def _unknown(request: Request) -> Found:
    present = {name: value for name, value in request.body.items() if name not in _BESIDE_THE_TYPE}
    unknown = unknown_fields(present, ResponseCreateParamsBase)
    return next(({"path": path(place)} for place in unknown if place[-1] not in _OF_CODEX), None)


def _missing(request: Request) -> Found:
    for index, tool in _functions(request):
        for name in ("name", "parameters"):
            if name not in tool:
                return {"path": f"tools[{index}].{name}"}
    return None


def _few_tokens(request: Request) -> Found:
    asked = request.body.get("max_output_tokens")
    return {"value": asked} if isinstance(asked, int) and asked < _LEAST_TOKENS else None


def _sampling(request: Request) -> Found:
    effort = (request.body.get("reasoning") or {}).get("effort")
    rests = effort == "none" or (effort is None and (5, 1) <= generation(request.model) <= (5, 4))
    if not reasons(request.model) or rests:
        return None
    return next(({"name": name} for name in _SAMPLING if request.body.get(name) is not None), None)


def _kind_of_part(request: Request) -> Found:
    for index, item in _items(request):
        for position, part in only_mappings(item.get("content")):
            if part.get("type") in ("text", "image_url", "file"):
                return {"kind": part["type"], "place": f"input[{index}].content[{position}]"}
    return None


def _kind_of_output(request: Request) -> Found:
    for index, item in _items(request):
        for position, part in only_mappings(item.get("output")) if item.get("type") in _OUTPUTS else ():
            if part.get("type") not in ("input_text", "input_image", "input_file", "scoped_content"):
                return {"kind": part.get("type"), "place": f"input[{index}].output[{position}]"}
    return None


def _is_alone(request: Request) -> bool:
    return not any(request.body.get(name) for name in ("previous_response_id", "conversation"))


def _output_without_call(request: Request) -> Found:
    called = {item.get("call_id") for _, item in _items(request) if item.get("type") in _CALLS}
    for _, item in _items(request) if _is_alone(request) else ():
        if item.get("type") in _OUTPUTS and item.get("call_id") not in called:
            return {"id": item.get("call_id")}
    return None


def _call_without_output(request: Request) -> Found:
    answered = {item.get("call_id") for _, item in _items(request) if item.get("type") in _OUTPUTS}
    for _, item in _items(request):
        if item.get("type") in _CALLS and item.get("call_id") not in answered:
            return {"id": item.get("call_id")}
    return None


def _unfollowed_reasoning(request: Request) -> Found:
    items = [item for _, item in _items(request)]
    for item, following in pairwise([*items, {}]):
        if item.get("type") == "reasoning":
            kind, role = str(following.get("type", "message")), following.get("role")
            if kind in _OUTPUTS or (kind == "message" and role != "assistant"):
                return {"id": item.get("id")}
    return None


def _reasoning_that_is_not_kept(request: Request) -> Found:
    for _, item in _items(request):
        is_kept = request.body.get("store") is not False or item.get("encrypted_content")
        if item.get("type") == "reasoning" and not is_kept:
            return {"id": item.get("id")}
    return None


def _long_id(request: Request) -> Found:
    for index, item in _items(request):
        value = item.get("call_id")
        if isinstance(value, str) and len(value) > _MAX_ID_LENGTH:
            return {"place": f"input[{index}].call_id", "most": _MAX_ID_LENGTH, "length": len(value)}
    return None


def _name(request: Request) -> Found:
    for index, tool in _functions(request):
        if not NAME.fullmatch(str(tool.get("name", ""))):
            return {"place": f"tools[{index}].name", "pattern": "^[a-zA-Z0-9_-]+$"}
    return None


def _schema(request: Request) -> Found:
    for index, tool in _functions(request):
        schema = tool.get("parameters")
        if isinstance(schema, Mapping) and schema.get("type") != "object":
            problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'"
            return {"name": tool.get("name"), "index": index, "context": (), "problem": problem}
        # Where the request says nothing of `strict`, the vendor closes the schema itself.
        fault = first_unfinished(schema) or (first_open(schema) if tool.get("strict") is True else None)
        if fault is not None:
            return {"name": tool.get("name"), "index": index, **fault}
    return None


def _answer_schema(request: Request) -> Found:
    wanted = (request.body.get("text") or {}).get("format") or {}
    fault = first_open(wanted.get("schema")) if wanted.get("strict") else None
    return None if fault is None else {"name": wanted.get("name"), **fault}


RESPONSES = Table(
    error,
    (
        Rule(
            "missing field",
            _REPORTS + "icebear0828/codex-proxy/issues/399",
            "Missing required parameter: '{path}'.",
            _missing,
            param="{path}",
            code="missing_required_parameter",
        ),
        Rule(
            "unknown field",
            _REPORTS + "1jehuang/jcode/issues/1028",
            "Unknown parameter: '{path}'.",
            _unknown,
            param="{path}",
            code="unknown_parameter",
        ),
        Rule(
            "few tokens",
            _REPORTS + "vectorize-io/hindsight/issues/58",
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {value}"
            " instead.",
            _few_tokens,
            param="max_output_tokens",
            code="integer_below_min_value",
        ),
        Rule(
            "sampling at a model that reasons",
            _REPORTS + "OpenHands/software-agent-sdk/issues/1837",
            "Unsupported parameter: '{name}' is not supported with this model.",
            _sampling,
            param="{name}",
        ),
        Rule(
            "part of a chat completion",
            _REPORTS + "MervinPraison/PraisonAI/issues/3934",
            "Invalid value: '{kind}'. Supported values are: 'input_text', 'input_image', 'input_audio', 'output_text',"
            " 'refusal', 'input_file', 'computer_screenshot', 'summary_text', and 'encrypted_content'.",
            _kind_of_part,
            param="{place}.type",
            code="invalid_value",
        ),
        Rule(
            "part of a result",
            _REPORTS + "linanwx/nagobot/issues/27",
            "Invalid value: '{kind}'. Supported values are: 'input_text', 'input_image', 'input_file', and"
            " 'scoped_content'.",
            _kind_of_output,
            param="{place}",
            code="invalid_value",
        ),
        Rule(
            "result without call",
            _REPORTS + "james-6-23/codex2api/issues/414",
            "No tool call found for function call output with call_id {id}.",
            _output_without_call,
            param="input",
        ),
        Rule(
            "call without result",
            _REPORTS + "openai/openai-support-agent-demo/issues/12",
            "No tool output found for function call {id}.",
            _call_without_output,
            param="input",
        ),
        Rule(
            "reasoning that is not kept",
            _REPORTS + "continuedev/continue/issues/9101",
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with"
            " `store` set to true, or remove this item from your input.",
            _reasoning_that_is_not_kept,
            param="input",
        ),
        Rule(
            "reasoning without what followed",
            _REPORTS + "continuedev/continue/issues/8933",
            "Item '{id}' of type 'reasoning' was provided without its required following item.",
            _unfollowed_reasoning,
            param="input",
        ),
        Rule(
            "long id of a call",
            _REPORTS + "AnswerDotAI/fastllm/issues/45",
            "Invalid '{place}': string too long. Expected a string with maximum length {most}, but got a string with"
            " length {length} instead.",
            _long_id,
            param="{place}",
            code="string_above_max_length",
        ),
        Rule(
            "name with wrong characters",
            _REPORTS + "mcp-use/mcp-use/issues/90",
            "Invalid '{place}': string does not match pattern. Expected a string that matches the pattern '{pattern}'.",
            _name,
            param="{place}",
            code="invalid_value",
        ),
        Rule(
            "schema of a function",
            _REPORTS + "tailcallhq/forgecode/issues/1359",
            "Invalid schema for function '{name}': In context={context}, {problem}.",
            _schema,
            param="tools[{index}].parameters",
            code="invalid_function_parameters",
        ),
        Rule(
            "open schema of a strict answer",
            _REPORTS + "dottxt-ai/outlines/issues/844",
            "Invalid schema for response_format '{name}': In context={context}, {problem}.",
            _answer_schema,
            param="text.format.schema",
            code="invalid_json_schema",
        ),
    ),
)
