"""What Gemini's generateContent refuses, as the Gemini API and as Vertex AI serve it.

A request is checked with its field names in camel case; Google accepts either spelling.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.genai import types
from typing_extensions import TypedDict

from tests.fakes.dialects.rules.fields import Place, unknown_fields
from tests.fakes.dialects.rules.schemas import subschemas
from tests.fakes.dialects.rules.table import Found, Json, Request, Rule, Table, only_mappings

_REPORTS = "https://github.com/"
_DOCS = "https://ai.google.dev/gemini-api/docs/"
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_GENERATION = re.compile(r"gemini-(\d+)")
# The values of these fields are data of the client's, or are read in either spelling.
_FREE = {"args", "response", "labels", "fileSearch", "googleSearch", "parametersJsonSchema", "responseJsonSchema"}
_DATA = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
    "toolCall", "toolResponse",
)  # fmt: skip
# The tools that Google runs itself.
_BUILT_IN = ("googleSearch", "codeExecution", "urlContext", "googleMaps", "googleSearchRetrieval", "fileSearch")
# https://ai.google.dev/api/caching#Schema lists the keywords; the SDK's type has Vertex AI's as well.
_NOT_IN_SCHEMAS = {"additionalProperties", "defs", "ref"}
# Fields that the SDK's types have for the other place, or for another version of the API. Each is the last step.
_NOT_AT_GEMINI = {
    "retrieval", "enterpriseWebSearch", "parallelAiSearch", "exaAiSearch", "modelSelectionConfig", "routingConfig",
    "audioTimestamp", "streamFunctionCallArguments", "partialArgs", "method",
}  # fmt: skip
_NOT_AT_VERTEX = {"includeServerSideToolInvocations", "fileSearch", "toolCall", "toolResponse", "partMetadata"}


class _Body(TypedDict, total=False):
    contents: list[types.Content]
    systemInstruction: types.Content
    tools: list[types.Tool]
    toolConfig: types.ToolConfig
    generationConfig: types.GenerationConfig
    safetySettings: list[types.SafetySetting]
    cachedContent: str
    serviceTier: str
    store: bool
    labels: dict[str, str]
    modelArmorConfig: dict[str, Any]


def error(status: int, message: str, param: str | None, code: str | None) -> Json:
    del code
    held: Json = {"code": status, "message": message, "status": "INVALID_ARGUMENT"}
    if param is not None:
        violation = {"field": param, "description": message}
        held["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
    return {"error": held}


def generation(model: str) -> int:
    found = _GENERATION.search(model)
    return int(found[1]) if found else 0


def contents(request: Request) -> list[tuple[int, Mapping[str, Any]]]:
    return only_mappings(request.body.get("contents"))


def _parts(request: Request) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    for index, content in contents(request):
        for position, part in only_mappings(content.get("parts")):
            yield index, position, part


def _functions(request: Request) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    for index, tool in only_mappings(request.body.get("tools")):
        for position, function in only_mappings(tool.get("functionDeclarations")):
            yield index, position, function


def _config(request: Request, name: str = "") -> Mapping[str, Any]:
    config = request.body.get("generationConfig")
    held = config.get(name) if name and isinstance(config, Mapping) else config
    return held if isinstance(held, Mapping) else {}


def _path(body: Any, place: Place) -> str:
    """Returns the place as Google writes it: `tools[0].function_declarations[0].parameters.properties[0].value`."""
    written = ""
    for step in place:
        is_entry = written.endswith(".properties")
        if isinstance(step, int):
            written += f"[{step}]"
        elif is_entry and isinstance(body, Mapping):
            written += f"[{list(body).index(step)}].value"
        else:
            written += "." + re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), step)
        body = body[step]
    return written.removeprefix(".")


def _unknown(not_here: set[str]) -> Callable[[Request], Found]:
    def find(request: Request) -> Found:
        for place in unknown_fields(request.body, _Body):
            if not _FREE & {step for step in place[:-1] if isinstance(step, str)}:
                return _named(request, place)
        for place in _places(request.body):
            if place[-1] in not_here or (place[-1] in _NOT_IN_SCHEMAS and _is_in_schema(place)):
                return _named(request, place)
        return None

    return find


def _named(request: Request, place: Place) -> Found:
    path = _path(request.body, place[:-1])
    return {"name": place[-1], "where": f" at '{path}'" if path else "", "path": path}


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    if isinstance(value, Mapping):
        for name, held in value.items():
            yield (*place, name)
            if name not in _FREE and name != "properties":
                yield from _places(held, (*place, name))
            elif name == "properties":
                for key, inner in held.items() if isinstance(held, Mapping) else ():
                    yield from _places(inner, (*place, name, key))
    elif isinstance(value, list):
        for index, held in enumerate(value):
            yield from _places(held, (*place, index))


def _is_in_schema(place: Place) -> bool:
    return any(step in ("parameters", "responseSchema") for step in place)


def _id_at_an_older_model(request: Request) -> Found:
    """Vertex AI takes ids of calls from the third generation on."""
    for index, position, part in _parts(request):
        for name in ("functionCall", "functionResponse"):
            held = part.get(name)
            if isinstance(held, Mapping) and "id" in held and generation(request.model) < 3:
                kind = "function_call" if name == "functionCall" else "function_response"
                path = f"contents[{index}].parts[{position}].{kind}"
                return {"name": "id", "where": f" at '{path}'", "path": path}
    return None


def _no_contents(request: Request) -> Found:
    return None if request.body.get("contents") else {}


def _role(request: Request) -> Found:
    return next(({} for _, content in contents(request) if content.get("role", "user") not in ("user", "model")), None)


def _no_parts(request: Request) -> Found:
    return next(({"index": index} for index, content in contents(request) if not content.get("parts")), None)


def _no_data(request: Request) -> Found:
    for index, position, part in _parts(request):
        if not any(name in part for name in _DATA):
            return {"index": index, "position": position}
    return None


def _two_kinds_of_data(request: Request) -> Found:
    for index, position, part in _parts(request):
        given = [name for name in part if name in _DATA]
        if len(given) > 1:
            return {"index": index, "position": position, "name": given[1]}
    return None


def _count(content: Mapping[str, Any], name: str) -> int:
    return sum(name in part for _, part in only_mappings(content.get("parts")))


def _turns(request: Request) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    held = [content for _, content in contents(request)]
    return list(zip(held, [{}, *held], strict=False))


def _responses_without_calls(request: Request) -> Found:
    for content, before in _turns(request):
        if _count(content, "functionResponse") and not _count(before, "functionCall"):
            return {}
    return None


def _unequal_responses(request: Request) -> Found:
    for content, before in _turns(request):
        called = _count(before, "functionCall")
        if called and called != _count(content, "functionResponse"):
            return {}
    return None


def _place_of_a_call(request: Request) -> Found:
    for content, before in _turns(request):
        is_behind_the_user = bool(before) and before.get("role", "user") == "user"
        if _count(content, "functionCall") and (content.get("role") != "model" or not is_behind_the_user):
            return {}
    return None


def _signature(request: Request) -> Found:
    for index, position, part in _parts(request):
        signature = part.get("thoughtSignature", "")
        try:
            base64.urlsafe_b64decode(signature)
        except ValueError:
            return {"index": index, "position": position, "value": signature}
    return None


def _unsigned_call(request: Request) -> Found:
    """Of parallel calls only the first has a signature."""
    if generation(request.model) < 3:
        return None
    for index, content in contents(request):
        calls = [part for _, part in only_mappings(content.get("parts")) if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            return {"name": calls[0]["functionCall"].get("name"), "position": index + 1}
    return None


def _function_name(request: Request) -> Found:
    for index, position, function in _functions(request):
        if not _NAME.fullmatch(str(function.get("name", ""))):
            return {"index": index, "position": position}
    return None


def _repeated_function(request: Request) -> Found:
    seen: set[Any] = set()
    for _, _, function in _functions(request):
        if function.get("name") in seen:
            return {"name": function.get("name")}
        seen.add(function.get("name"))
    return None


def _parameters(request: Request) -> Found:
    for index, position, function in _functions(request):
        schema = function.get("parameters") or function.get("parametersJsonSchema")
        if isinstance(schema, Mapping) and str(schema.get("type", "object")).lower() != "object":
            return {"index": index, "position": position}
    return None


def _two_kinds_of_parameters(request: Request) -> Found:
    for index, position, function in _functions(request):
        if {"parameters", "parametersJsonSchema"} <= function.keys():
            return {"index": index, "position": position}
    return None


def _list_of_types(request: Request) -> Found:
    for index, position, function in _functions(request):
        for _, inner in subschemas(function.get("parameters")):
            if isinstance(inner.get("type"), list):
                path = f"tools[{index}].function_declarations[{position}].parameters"
                return {"path": path}
    return None


def _array_without_items(request: Request) -> Found:
    for index, position, function in _functions(request):
        for context, inner in subschemas(function.get("parameters")):
            if str(inner.get("type")).upper() == "ARRAY" and "items" not in inner:
                name = context[-1] if context else ""
                return {"index": index, "position": position, "name": name}
    return None


def _answer_in_json_with_functions(request: Request) -> Found:
    is_json = _config(request).get("responseMimeType") == "application/json"
    return {} if is_json and 0 < generation(request.model) < 3 and any(_functions(request)) else None


def _schema_without_its_type(request: Request) -> Found:
    has_schema = {"responseSchema", "responseJsonSchema"} & _config(request).keys()
    return {} if has_schema and _config(request).get("responseMimeType") != "application/json" else None


def _has_built_in(request: Request) -> bool:
    return any(name in tool for _, tool in only_mappings(request.body.get("tools")) for name in _BUILT_IN)


def _built_in_tool_with_functions(request: Request) -> Found:
    is_older = 0 < generation(request.model) < 3
    return {} if is_older and any(_functions(request)) and _has_built_in(request) else None


def _built_in_tool_not_enabled(request: Request) -> Found:
    config = request.body.get("toolConfig")
    is_enabled = isinstance(config, Mapping) and config.get("includeServerSideToolInvocations") is True
    return {} if any(_functions(request)) and _has_built_in(request) and not is_enabled else None


def _names_without_any(request: Request) -> Found:
    config = request.body.get("toolConfig")
    calling = config.get("functionCallingConfig") if isinstance(config, Mapping) else None
    if not isinstance(calling, Mapping) or not calling.get("allowedFunctionNames"):
        return None
    return None if calling.get("mode") in ("ANY", "VALIDATED") else {}


def _budget_and_level(request: Request) -> Found:
    return {} if {"thinkingBudget", "thinkingLevel"} <= _config(request, "thinkingConfig").keys() else None


def _level_at_an_older_model(request: Request) -> Found:
    has_level = "thinkingLevel" in _config(request, "thinkingConfig")
    return {} if has_level and 0 < generation(request.model) < 3 else None


def _logprobs(request: Request) -> Found:
    config = _config(request)
    return {} if "logprobs" in config and config.get("responseLogprobs") is not True else None


_UNKNOWN = 'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
_COMMON = (
    Rule(
        "no contents",
        _REPORTS + "Calcium-Ion/new-api-horizon/issues/24",
        "* GenerateContentRequest.contents: contents is not specified\n",
        _no_contents,
    ),
    Rule("role", _REPORTS + "the-open-agent/openagent/issues/1666", "Please use a valid role: user, model.", _role),
    Rule(
        "no parts",
        _REPORTS + "egoist/chatwise-releases/issues/250",
        "* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n",
        _no_parts,
    ),
    Rule(
        "part without data",
        _REPORTS + "54xzh/FLIT/issues/69",
        "* GenerateContentRequest.contents[{index}].parts[{position}].data: required oneof field 'data' must have one"
        " initialized field\n",
        _no_data,
    ),
    Rule(
        "part with two kinds of data",
        "https://ai.google.dev/api/caching#Part",
        "Invalid value at 'contents[{index}].parts[{position}]' (oneof), oneof field 'data' is already set. Cannot set"
        " '{name}'",
        _two_kinds_of_data,
    ),
    Rule(
        "responses without calls",
        _REPORTS + "lobehub/lobehub/issues/7298",
        "Please ensure that function response turn comes immediately after a function call turn.",
        _responses_without_calls,
    ),
    Rule(
        "unequal number of responses",
        _REPORTS + "google-gemini/gemini-cli/issues/5443",
        "Please ensure that the number of function response parts is equal to the number of function call parts of the"
        " function call turn.",
        _unequal_responses,
    ),
    Rule(
        "place of a call",
        _REPORTS + "diegosouzapw/OmniRoute/pull/13573",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        _place_of_a_call,
    ),
    Rule(
        "call without signature",
        _REPORTS + "nanbingxyz/5ire/issues/405",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work"
        " correctly, and missing thought_signature may lead to degraded model performance. Additional data, function"
        " call `default_api:{name}` , position {position}. Please refer to"
        " https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
        _unsigned_call,
    ),
    Rule(
        "signature that is no base64",
        _DOCS + "thought-signatures",
        "Invalid value at 'contents[{index}].parts[{position}].thought_signature' (TYPE_BYTES), Base64 decoding failed"
        ' for "{value}"',
        _signature,
    ),
    Rule(
        "parameters that are no object",
        _DOCS + "function-calling",
        "* GenerateContentRequest.tools[{index}].function_declarations[{position}].parameters: schema should be of type"
        " OBJECT\n",
        _parameters,
    ),
    Rule(
        "name of a function",
        _REPORTS + "cline/cline/issues/7339",
        "* GenerateContentRequest.tools[{index}].function_declarations[{position}].name: Invalid function name. Must"
        " start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons"
        " (:), or dashes (-), with a maximum length of 128.\n",
        _function_name,
    ),
    Rule(
        "repeated function",
        _DOCS + "function-calling",
        "Duplicate function declaration found: {name}",
        _repeated_function,
    ),
    Rule(
        "two kinds of parameters",
        "https://ai.google.dev/api/caching#FunctionDeclaration",
        "* GenerateContentRequest.tools[{index}].function_declarations[{position}]: parameters and"
        " parameters_json_schema are mutually exclusive.\n",
        _two_kinds_of_parameters,
    ),
    Rule(
        "list of types",
        _REPORTS + "brightwave-inc/tidebreak/issues/1516",
        "Invalid JSON payload received. Unknown name \"type\" at '{path}': Proto field is not repeating, cannot start"
        " list.",
        _list_of_types,
        param="{path}",
    ),
    Rule(
        "array without items",
        _REPORTS + "cline/cline/issues/7339",
        "* GenerateContentRequest.tools[{index}].function_declarations[{position}].parameters.properties[{name}].items:"
        " missing field.\n",
        _array_without_items,
    ),
    Rule(
        "answer in JSON with functions",
        _REPORTS + "googleapis/python-genai/issues/867",
        "Function calling with a response mime type: 'application/json' is unsupported",
        _answer_in_json_with_functions,
    ),
    Rule(
        "schema without its type",
        _DOCS + "structured-output",
        "* GenerateContentRequest.generation_config.response_schema: only allowed when response_mime_type is"
        " 'application/json'\n",
        _schema_without_its_type,
    ),
    Rule(
        "built-in tool with functions",
        _REPORTS + "googleapis/go-genai/issues/323",
        "Tool use with function calling is unsupported",
        _built_in_tool_with_functions,
    ),
    Rule(
        "names of functions without their mode",
        _DOCS + "function-calling",
        "* GenerateContentRequest.tool_config.function_calling_config.allowed_function_names: only allowed when mode is"
        " ANY or VALIDATED\n",
        _names_without_any,
    ),
    Rule(
        "budget and level",
        _REPORTS + "Tom-Ryder/AgentRunKit/pull/7",
        "You can only set only one of thinking budget and thinking level.",
        _budget_and_level,
    ),
    Rule(
        "level at an older model",
        _DOCS + "thinking",
        "Thinking level is not supported for this model.",
        _level_at_an_older_model,
    ),
    Rule(
        "number of logprobs alone",
        "https://ai.google.dev/api/generate-content#generationconfig",
        "* GenerateContentRequest.generation_config.logprobs: only allowed when response_logprobs is true\n",
        _logprobs,
    ),
)
GEMINI = Table(
    error,
    (
        Rule(
            "unknown field",
            _REPORTS + "glowingjade/obsidian-smart-composer/issues/455",
            _UNKNOWN,
            _unknown(_NOT_AT_GEMINI),
            param="{path}",
        ),
        *_COMMON,
        Rule(
            "built-in tool that is not enabled",
            _REPORTS + "cloudwego/eino-ext/issues/761",
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function"
            " calling.",
            _built_in_tool_not_enabled,
        ),
    ),
)
VERTEX = Table(
    error,
    (
        Rule(
            "unknown field",
            _REPORTS + "glowingjade/obsidian-smart-composer/issues/455",
            _UNKNOWN,
            _unknown(_NOT_AT_VERTEX),
            param="{path}",
        ),
        Rule("id of a call", _REPORTS + "Chevey339/kelivo/issues/543", _UNKNOWN, _id_at_an_older_model, param="{path}"),
        *_COMMON,
    ),
)
