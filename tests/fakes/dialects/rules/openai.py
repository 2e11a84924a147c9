"""What OpenAI's chat completions refuse, and Azure's, which are the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from openai.types.chat import completion_create_params

from tests.fakes.dialects.rules.fields import Place, unknown_fields
from tests.fakes.dialects.rules.schemas import first_open, first_unfinished
from tests.fakes.dialects.rules.table import Found, Json, Request, Rule, Table, only_mappings

_REPORTS = "https://github.com/"
_REFERENCE = "https://platform.openai.com/docs/api-reference/chat/create"
_KIND = completion_create_params.CompletionCreateParamsBase
# The fields of the two ways of asking, and one that stands for what OpenAI will have tomorrow.
_BESIDE_THE_TYPE = {"stream", "a_field_of_tomorrow"}
# A message of the vendor's comes back whole: recording openai/chat_history_message_pydantic.80dd9810. Calls that were
# streamed have their index: https://github.com/RageAgainstThePixel/OpenAI-DotNet/issues/278
_OF_ANSWERS = {("annotations",), ("tool_calls", "index")}
NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MESSAGE_NAME = re.compile(r"[^\s<|\\/>]+")
_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
# The models that reason, and those of their families that do not.
_REASONING = re.compile(r"(o[134]|gpt-[5-9])(?!.*-chat)")
_NOT_REASONING = re.compile(r"gpt-(3\.5|4)")
_GENERATION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_ONLY_THE_DEFAULT = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
_NOT_WITH_REASONING = ("stop", "logprobs", "top_logprobs", "logit_bias")
# Each level that a model takes; later models than these are left out, since they get new levels.
_EFFORTS = (
    (re.compile(r"o[134]"), ("low", "medium", "high")),
    (re.compile(r"gpt-5(-mini|-nano)?(-2025.*)?$"), ("minimal", "low", "medium", "high")),
    (re.compile(r"gpt-5\.1(-2025.*)?$"), ("none", "low", "medium", "high")),
)
# The least and the greatest value, and the kind of number.
_BOUNDS = {
    "temperature": (0, 2, "decimal"),
    "top_p": (0, 1, "decimal"),
    "presence_penalty": (-2, 2, "decimal"),
    "frequency_penalty": (-2, 2, "decimal"),
    "n": (1, 128, "integer"),
    "top_logprobs": (0, 20, "integer"),
    "max_completion_tokens": (1, None, "integer"),
    "max_tokens": (1, None, "integer"),
}


def error(status: int, message: str, param: str | None, code: str | None) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def path(place: Place) -> str:
    """Returns the place as OpenAI writes it: `messages[1].content[0].text`."""
    written = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return written.removeprefix(".")


def reasons(model: str) -> bool:
    return _REASONING.match(model) is not None


def generation(model: str) -> tuple[int, int]:
    """Returns (5, 4) for `gpt-5.4-mini`, (0, 0) for models that are no GPT."""
    found = _GENERATION.match(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def effort(request: Request) -> str:
    """Returns the effort that holds: GPT-5.1 to 5.4 do not reason unless asked, all others do."""
    asked = request.body.get("reasoning_effort")
    return asked or ("none" if (5, 1) <= generation(request.model) <= (5, 4) else "medium")


def tools(request: Request) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, tool in only_mappings(request.body.get("tools")):
        if isinstance(tool.get("function"), Mapping):
            yield index, tool["function"]


def messages(request: Request) -> list[tuple[int, Mapping[str, Any]]]:
    return only_mappings(request.body.get("messages"))


def _calls(message: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    return only_mappings(message.get("tool_calls")) if message.get("role") == "assistant" else []


def _unknown(request: Request) -> Found:
    present = {name: value for name, value in request.body.items() if name not in _BESIDE_THE_TYPE}
    for place in unknown_fields(present, _KIND):
        if place[0] != "messages" or tuple(step for step in place[1:] if isinstance(step, str)) not in _OF_ANSWERS:
            return {"path": path(place)}
    return None


def _missing(request: Request) -> Found:
    for place, holder, names in _required(request):
        for name in names:
            if name not in holder:
                return {"path": path((*place, name))}
    return None


def _required(request: Request) -> Iterator[tuple[Place, Mapping[str, Any], tuple[str, ...]]]:
    yield (), request.body, ("messages",)
    for index, message in messages(request):
        yield ("messages", index), message, ("role",)
        for part, held in only_mappings(message.get("content")):
            yield ("messages", index, "content", part), held, ("type",)
        for position, call in _calls(message):
            yield ("messages", index, "tool_calls", position), call, ("id", "type")
    for index, tool in only_mappings(request.body.get("tools")):
        yield ("tools", index), tool, ("type", *(("function",) if tool.get("type") == "function" else ()))
        if isinstance(tool.get("function"), Mapping):
            yield ("tools", index, "function"), tool["function"], ("name",)
    wanted = request.body.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        yield ("response_format",), wanted, ("json_schema",)
        yield ("response_format", "json_schema"), wanted.get("json_schema") or {}, ("name",)


def _limit_by_its_old_name(request: Request) -> Found:
    return {} if reasons(request.model) and request.body.get("max_tokens") is not None else None


def _sampling(request: Request) -> Found:
    if not reasons(request.model) or effort(request) == "none":
        return None
    for name, default in _ONLY_THE_DEFAULT.items():
        value = request.body.get(name)
        if value is not None and value != default:
            return {"name": name, "value": value, "default": default}
    return None


def _not_with_reasoning(request: Request) -> Found:
    if not reasons(request.model) or effort(request) == "none":
        return None
    return next(({"name": name} for name in _NOT_WITH_REASONING if request.body.get(name)), None)


def _effort_without_reasoning(request: Request) -> Found:
    has_effort = request.body.get("reasoning_effort") is not None
    return {} if has_effort and _NOT_REASONING.match(request.model) else None


def _level(request: Request) -> Found:
    value = request.body.get("reasoning_effort")
    levels = next((levels for model, levels in _EFFORTS if model.match(request.model)), None)
    if value is None or levels is None or value in levels:
        return None
    *before, last = (f"'{level}'" for level in levels)
    return {"value": value, "levels": f"{', '.join(before)}, and {last}"}


def _tools_with_effort(request: Request) -> Found:
    """Finds functions at a model that reasons: from GPT-5.4 on with an effort, and from 5.5 on also without one, unless
    it is switched off."""
    if generation(request.model) < (5, 4) or not reasons(request.model) or not any(tools(request)):
        return None
    return {"model": request.model} if effort(request) != "none" else None


def _orphaned_result(request: Request) -> Found:
    called: set[Any] = set()
    for index, message in messages(request):
        if message.get("role") != "tool":
            called = {call.get("id") for _, call in _calls(message)}
        elif message.get("tool_call_id") not in called:
            return {"index": index}
    return None


def _call_without_result(request: Request) -> Found:
    waiting: list[Any] = []
    for index, message in [*messages(request), (len(messages(request)), {})]:
        if message.get("role") == "tool":
            waiting = [call for call in waiting if call != message.get("tool_call_id")]
        elif waiting:
            return {"index": index, "ids": ", ".join(map(str, waiting))}
        else:
            waiting = [call.get("id") for _, call in _calls(message)]
    return None


def _names(request: Request) -> Iterator[tuple[Place, str]]:
    for index, function in tools(request):
        yield ("tools", index, "function", "name"), str(function.get("name", ""))
    for index, message in messages(request):
        for position, call in _calls(message):
            held = call.get("function")
            if isinstance(held, Mapping):
                yield ("messages", index, "tool_calls", position, "function", "name"), str(held.get("name", ""))
    wanted = request.body.get("response_format")
    if isinstance(wanted, Mapping) and isinstance(wanted.get("json_schema"), Mapping):
        yield ("response_format", "json_schema", "name"), str(wanted["json_schema"].get("name", ""))


def _name_with_wrong_characters(request: Request) -> Found:
    for place, name in _names(request):
        if not NAME.fullmatch(name):
            return {"path": path(place), "pattern": "^[a-zA-Z0-9_-]+$"}
    for index, message in messages(request):
        author = message.get("name")
        if isinstance(author, str) and not _MESSAGE_NAME.fullmatch(author):
            return {"path": f"messages[{index}].name", "pattern": r"^[^\s<|\\/>]+$"}
    return None


def _too_long(request: Request) -> Found:
    for place, name in _names(request):
        if len(name) > 64:
            return {"path": path(place), "most": 64, "length": len(name)}
    for index, message in messages(request):
        for position, call in _calls(message):
            if len(str(call.get("id", ""))) > 40:
                place = ("messages", index, "tool_calls", position, "id")
                return {"path": path(place), "most": 40, "length": len(call["id"])}
        if message.get("role") == "tool" and len(str(message.get("tool_call_id", ""))) > 40:
            return {"path": f"messages[{index}].tool_call_id", "most": 40, "length": len(message["tool_call_id"])}
    return None


def _function_schema(request: Request) -> Found:
    for index, function in tools(request):
        schema = function.get("parameters")
        if isinstance(schema, Mapping) and schema and schema.get("type") != "object":
            problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'"
            return {"name": function.get("name"), "index": index, "problem": problem}
        fault = first_unfinished(schema) or (first_open(schema) if function.get("strict") is True else None)
        if fault is not None:
            problem = f"In context={fault['context']}, {fault['problem']}"
            return {"name": function.get("name"), "index": index, "problem": problem}
    return None


def _response_schema(request: Request) -> Found:
    wanted = request.body.get("response_format")
    held = wanted.get("json_schema") if isinstance(wanted, Mapping) else None
    if not isinstance(held, Mapping) or held.get("strict") is not True:
        return None
    fault = first_open(held.get("schema"))
    return None if fault is None else {"name": held.get("name"), **fault}


def _image_beside_the_user(request: Request) -> Found:
    for index, message in messages(request):
        kinds = [part.get("type") for _, part in only_mappings(message.get("content"))]
        if message.get("role") != "user" and "image_url" in kinds:
            return {"index": index, "role": message.get("role")}
    return None


def _no_content(request: Request) -> Found:
    for index, message in messages(request):
        says_nothing = message.get("content") is None
        stands_alone = not any(message.get(name) for name in ("tool_calls", "function_call", "audio", "refusal"))
        if says_nothing and (message.get("role") != "assistant" or stands_alone):
            return {"index": index}
    return None


def _empty_list(request: Request) -> Found:
    lists: dict[str, Any] = {"messages": request.body.get("messages"), "tools": request.body.get("tools")}
    for index, message in messages(request):
        lists[f"messages[{index}].content"] = message.get("content")
        lists[f"messages[{index}].tool_calls"] = message.get("tool_calls")
    return next(({"path": name} for name, value in lists.items() if value == []), None)


def _long_list(request: Request) -> Found:
    for name, most in (("stop", 4), ("tools", 128)):
        value = request.body.get(name)
        if isinstance(value, list) and len(value) > most:
            return {"name": name, "most": most, "length": len(value)}
    return None


def _role(request: Request) -> Found:
    for index, message in messages(request):
        if "role" in message and message["role"] not in _ROLES:
            *before, last = (f"'{role}'" for role in _ROLES)
            return {"index": index, "role": message["role"], "roles": f"{', '.join(before)}, and {last}"}
    return None


def _role_of_the_model(request: Request) -> Found:
    # The first models that reasoned took no instructions.
    if not re.match(r"o1-(mini|preview)", request.model):
        return None
    for index, message in messages(request):
        if message.get("role") in ("system", "developer"):
            return {"index": index, "role": message["role"]}
    return None


def _bound(request: Request, *, below: bool) -> Found:
    for name, (least, most, kind) in _BOUNDS.items():
        value = request.body.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if below and value < least:
            return {"name": name, "kind": kind, "bound": least, "value": value}
        if not below and most is not None and value > most:
            return {"name": name, "kind": kind, "bound": most, "value": value}
    return None


def _only_with(name: str, other: str, *more: str) -> Any:
    def find(request: Request) -> Found:
        given = request.body.get(name) is not None
        return {} if given and not any(request.body.get(field) for field in (other, *more)) else None

    return find


def _word_json(request: Request) -> Found:
    wanted = request.body.get("response_format")
    if not isinstance(wanted, Mapping) or wanted.get("type") != "json_object":
        return None
    said = json.dumps([message.get("content") for _, message in messages(request)]).lower()
    return None if "json" in said else {}


def _companions() -> Iterator[Rule]:
    for name, other, source in (
        ("tool_choice", "tools", "writer/writer-framework/pull/1013"),
        ("parallel_tool_calls", "tools", "Upsonic/Upsonic/issues/323"),
        ("function_call", "functions", "Azure-Samples/azure-search-openai-demo/pull/1175"),
    ):
        words = f"Invalid value for '{name}': '{name}' is only allowed when '{other}' are specified."
        yield Rule(f"{name} without {other}", _REPORTS + source, words, _only_with(name, other), param=name)
    for name, other, source in (
        ("stream_options", "stream", "BerriAI/litellm/issues/5803"),
        ("metadata", "store", "QwenLM/qwen-code/issues/243"),
    ):
        words = f"The '{name}' parameter is only allowed when '{other}' is enabled."
        yield Rule(f"{name} without {other}", _REPORTS + source, words, _only_with(name, other), param=name)


CHAT = Table(
    error,
    (
        Rule(
            "unknown field",
            _REPORTS + "teabranch/open-responses-server/issues/41",
            "Unknown parameter: '{path}'.",
            _unknown,
            param="{path}",
            code="unknown_parameter",
        ),
        Rule(
            "missing field",
            _REPORTS + "bolna-ai/bolna/issues/144",
            "Missing required parameter: '{path}'.",
            _missing,
            param="{path}",
            code="missing_required_parameter",
        ),
        Rule(
            "empty list",
            _REPORTS + "continuedev/continue/issues/3370",
            "Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            _empty_list,
            param="{path}",
            code="empty_array",
        ),
        Rule(
            "long list",
            _REPORTS + "vishalmysore/Tools4AI/issues/16",
            "Invalid '{name}': array too long. Expected an array with maximum length {most}, but got an array with"
            " length {length} instead.",
            _long_list,
            param="{name}",
            code="array_above_max_length",
        ),
        Rule(
            "value below its bound",
            _REPORTS + "vectorize-io/hindsight/issues/58",
            "Invalid '{name}': {kind} below minimum value. Expected a value >= {bound}, but got {value} instead.",
            lambda request: _bound(request, below=True),
            param="{name}",
            code="integer_below_min_value",
        ),
        Rule(
            "value above its bound",
            _REPORTS + "thisisartium/continuous-alignment-testing/issues/25",
            "Invalid '{name}': {kind} above maximum value. Expected a value <= {bound}, but got {value} instead.",
            lambda request: _bound(request, below=False),
            param="{name}",
            code="integer_above_max_value",
        ),
        Rule(
            "unknown role",
            _REFERENCE + "#chat-create-messages",
            "Invalid value: '{role}'. Supported values are: {roles}.",
            _role,
            param="messages[{index}].role",
            code="invalid_value",
        ),
        Rule(
            "role that the model lacks",
            "recording openai/openai_o1_mini_system_role_developer.b701c3f9",
            "Unsupported value: 'messages[{index}].role' does not support '{role}' with this model.",
            _role_of_the_model,
            param="messages[{index}].role",
            code="unsupported_value",
        ),
        Rule(
            "no content",
            _REPORTS + "langchain-ai/langchainjs/issues/4153",
            "Invalid value for 'content': expected a string, got null.",
            _no_content,
            param="messages.[{index}].content",
        ),
        Rule(
            "image beside the user",
            _REPORTS + "OpenHands/OpenHands/issues/7700",
            "Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', but this message"
            " with role '{role}' contains an image URL.",
            _image_beside_the_user,
            param="messages[{index}]",
            code="invalid_value",
        ),
        Rule(
            "orphaned result",
            _REPORTS + "langchain-ai/task_mAIstro/issues/1",
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
            " 'tool_calls'.",
            _orphaned_result,
            param="messages.[{index}].role",
        ),
        Rule(
            "call without result",
            _REPORTS + "farhan0167/otto-m8/issues/30",
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            " 'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
            _call_without_result,
            param="messages.[{index}].role",
        ),
        Rule(
            "name with wrong characters",
            _REPORTS + "mcp-use/mcp-use/issues/90",
            "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '{pattern}'.",
            _name_with_wrong_characters,
            param="{path}",
            code="invalid_value",
        ),
        Rule(
            "long name",
            _REPORTS + "vercel/ai/issues/8132",
            "Invalid '{path}': string too long. Expected a string with maximum length {most}, but got a string with"
            " length {length} instead.",
            _too_long,
            param="{path}",
            code="string_above_max_length",
        ),
        Rule(
            "schema of a function",
            _REPORTS + "modelscope/ms-agent/pull/610",
            "Invalid schema for function '{name}': {problem}.",
            _function_schema,
            param="tools[{index}].function.parameters",
            code="invalid_function_parameters",
        ),
        Rule(
            "open schema of a strict answer",
            _REPORTS + "dottxt-ai/outlines/issues/844",
            "Invalid schema for response_format '{name}': In context={context}, {problem}.",
            _response_schema,
            param="response_format",
        ),
        Rule(
            "answer in JSON without the word",
            "recording openai/json_mode.935bd619",
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            _word_json,
            param="messages",
        ),
        *_companions(),
        Rule(
            "limit by its old name",
            _REPORTS + "griptape-ai/ComfyUI-Griptape/issues/312",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            " instead.",
            _limit_by_its_old_name,
            param="max_tokens",
            code="unsupported_parameter",
        ),
        Rule(
            "sampling at a model that reasons",
            _REPORTS + "diffbot/code-gpt-docs/issues/445",
            "Unsupported value: '{name}' does not support {value} with this model. Only the default ({default}) value"
            " is supported.",
            _sampling,
            param="{name}",
            code="unsupported_value",
        ),
        Rule(
            "parameter of models that do not reason",
            _REPORTS + "huggingface/smolagents/issues/1671",
            "Unsupported parameter: '{name}' is not supported with this model.",
            _not_with_reasoning,
            param="{name}",
            code="unsupported_parameter",
        ),
        Rule(
            "effort at a model that does not reason",
            _REPORTS + "generative-computing/mellea/issues/270",
            "Unrecognized request argument supplied: reasoning_effort",
            _effort_without_reasoning,
        ),
        Rule(
            "effort that the model lacks",
            _REPORTS + "Kilo-Org/cloud/pull/3807",
            "Unsupported value: 'reasoning_effort' does not support '{value}' with this model. Supported values are:"
            " {levels}.",
            _level,
            param="reasoning_effort",
            code="unsupported_value",
        ),
        Rule(
            "tools with effort",
            _REPORTS + "BerriAI/litellm/pull/34569",
            "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use"
            " function tools, use /v1/responses or set reasoning_effort to 'none'.",
            _tools_with_effort,
            param="reasoning_effort",
        ),
    ),
)
