"""https://ai.google.dev/api/generate-content"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from core.errors import ValidationError
from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES
from gateway.protocol.wire import MAX_MESSAGES
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import Json, decoded, field_of, invalid, optional_text, required_name
from gateway.surfaces.gemini.config import read_config
from gateway.surfaces.gemini.contents import read_contents, read_instruction
from gateway.surfaces.gemini.fields import json_schema, message, optional_message, repeated
from gateway.surfaces.tool_names import fit_names
from integrations.providers.google.field_names import camel

# The gateway acts on these fields itself, under the names that they have in a chat completion.
OF_THE_GATEWAY = frozenset({"models", "provider", "prompt_config", "prompt_variables"})
_READ_TOGETHER = frozenset(
    {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "serviceTier", "model"}
)
# Google's adapter takes these out of a chat completion, and others leave them out.
_GOOGLES = frozenset({"safetySettings", "labels", "modelArmorConfig", "continuationToken"})
_CACHED = "cachedContent"
_STANDARD = "standard"
# These fields concern the answer, which a request to count tokens has none of.
_OF_ANSWERS = frozenset({"generationConfig", "safetySettings"})
_COUNTED = "generateContentRequest"

_encode = msgspec.json.Encoder().encode


# A character of a text takes at most six bytes in JSON, and four in UTF-8.
_Text = Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE_BYTES // 6)]


_FUNCTIONS = "functionDeclarations"
# A search of the web is the vendor's own at others.
_SEARCHES = frozenset({"googleSearch", "googleSearchRetrieval", "enterpriseWebSearch"})
_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto", "MODE_UNSPECIFIED": "auto"}
_CALLING = "functionCallingConfig"


def read_tools(fields: Json, untranslatable: list[str], warnings: list[str]) -> Json:
    made: Json = {}
    tools: list[Json] = []
    for number, value in enumerate(repeated(fields, "tools")):
        place = f"tools[{number}]"
        for name, held in message(value, place).items():
            if held is None:
                continue
            if name == _FUNCTIONS:
                tools += _functions(message(value, place), place)
            elif name in _SEARCHES:
                made["web_search_options"] = {}
                warnings += _settings(message(held, field_of(place, name)), f"{place}.{name}")
            else:
                tools.append({name: held})
                untranslatable.append(f"{place}.{name}: only Google has this tool")
    if tools:
        made["tools"] = tools
    return made | _config(fields, has_functions=any("function" in tool for tool in tools))


def _functions(tool: Json, place: str) -> list[Json]:
    found = []
    for number, value in enumerate(repeated(tool, _FUNCTIONS, place)):
        where = f"{place}.{_FUNCTIONS}[{number}]"
        declared = message(value, where)
        function: Json = {"name": required_name(declared, "name", where)}
        if description := optional_text(declared, "description", where):
            function["description"] = description
        if (schema := declared.get("parametersJsonSchema")) is not None:
            function["parameters"] = _object(schema, field_of(where, "parametersJsonSchema"))
        elif (parameters := declared.get("parameters")) is not None:
            function["parameters"] = json_schema(_object(parameters, field_of(where, "parameters")))
        found.append({"type": "function", "function": function})
    return found


def _object(value: Any, place: str) -> Json:
    if not isinstance(value, dict):
        raise invalid(place, "expected an object")
    return value


def _settings(search: Json, place: str) -> list[str]:
    return [f"{place}.{name}: dropped, only Google's search has it" for name, value in search.items() if value]


def _config(fields: Json, *, has_functions: bool) -> Json:
    place = "toolConfig"
    config = optional_message(fields, place)
    if config is None:
        return {}
    others = {name: value for name, value in config.items() if name != _CALLING and value is not None}
    made: Json = {place: others} if others else {}
    calling = optional_message(config, _CALLING, place)
    if calling is None or not has_functions:
        return made
    where = f"{place}.{_CALLING}"
    mode = (optional_text(calling, "mode", where) or "AUTO").upper()
    if mode not in _MODES:
        raise invalid(f"{where}.mode", f"expected one of {', '.join(_MODES)}")
    names = calling.get("allowedFunctionNames") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise invalid(f"{where}.allowedFunctionNames", "expected a list of strings")
    return {**made, "tool_choice": _choice(_MODES[mode], names)}


def _choice(word: str, names: list[str]) -> Any:
    if not names or word == "none":
        return word
    if len(names) == 1 and word == "required":
        return {"type": "function", "function": {"name": names[0]}}
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": word, "tools": tools}}


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    text: _Text


_OnePart = Annotated[list[_Part], msgspec.Meta(min_length=1, max_length=1)]


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    parts: _OnePart
    role: Literal["user", "model"] = "user"


class _Instruction(msgspec.Struct, forbid_unknown_fields=True):
    parts: _OnePart
    role: str = ""


class _Config(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None


class _Plain(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    contents: Annotated[list[_Content], msgspec.Meta(min_length=1, max_length=MAX_MESSAGES - 1)]
    system_instruction: _Instruction | None = None
    generation_config: _Config | None = None


_ROLES = {"user": "user", "model": "assistant"}


def plain_chat(fields: Json, model: str) -> Json | None:
    try:
        plain = msgspec.convert(fields, _Plain)
    except msgspec.ValidationError:
        return None
    messages: list[Json] = [{"role": _ROLES[one.role], "content": one.parts[0].text} for one in plain.contents]
    if plain.system_instruction is not None and (text := plain.system_instruction.parts[0].text):
        messages.insert(0, {"role": "system", "content": text})
    made: Json = {"model": model, "messages": messages}
    if (config := plain.generation_config) is not None:
        if config.max_output_tokens is not None:
            made["max_tokens"] = config.max_output_tokens
        if config.temperature is not None:
            made["temperature"] = config.temperature
        if config.top_p is not None:
            made["top_p"] = config.top_p
        if config.top_k is not None:
            made["top_k"] = config.top_k
    return made


def read(body: bytes, model: str, *, stream: bool) -> SurfaceRequest:
    """`model` and `stream` come from the address; `echo` of the result is True if the client wants to see thoughts.
    Raises ValidationError (400), whose message names the client's field."""
    fields = decoded(body)
    plain = plain_chat(fields, model)
    if plain is None:
        return translated(_spelled(fields), model, stream=stream)
    if stream:
        plain["stream"] = True
    return SurfaceRequest(_encode(plain), echo=False, fields=plain, is_plain=True, is_translated=True)


def read_count(body: bytes, model: str) -> SurfaceRequest:
    """The chat completion whose prompt is to be counted (https://ai.google.dev/api/tokens)."""
    fields = _spelled(decoded(body))
    counted = fields.pop(_COUNTED, None)
    if counted is None:
        return _counted(fields, model)
    inner = message(counted, _COUNTED)
    try:
        return _counted(fields | inner, model)
    except ValidationError as error:
        raise ValidationError(f"{_COUNTED}.{error.message}", code=error.code) from None


def _counted(fields: Json, model: str) -> SurfaceRequest:
    return translated({name: fields[name] for name in fields if name not in _OF_ANSWERS}, model, stream=False)


def _spelled(fields: Json) -> Json:
    return {name if name in OF_THE_GATEWAY else camel(name): value for name, value in fields.items()}


def translated(fields: Json, model: str, *, stream: bool) -> SurfaceRequest:
    untranslatable: list[str] = []
    warnings: list[str] = []
    messages = read_instruction(fields) + read_contents(fields, untranslatable)
    made: Json = {"model": model, "messages": messages}
    for name, value in fields.items():
        if value is None or name in _READ_TOGETHER:
            continue
        if name in OF_THE_GATEWAY or name in _GOOGLES:
            made[name] = value
        elif name == _CACHED:
            made[name] = value
            untranslatable.append(f"{name}: only Google has the cache that it names")
        else:
            untranslatable.append(f"{name}: a chat completion has no such field")
    if tier := optional_text(fields, "serviceTier"):
        made["service_tier"] = "default" if tier.lower() == _STANDARD else tier.lower()
    if "tools" in fields or "toolConfig" in fields:
        made |= read_tools(fields, untranslatable, warnings)
    parameters, shows_thoughts = read_config(fields, untranslatable)
    made |= parameters
    if stream:
        made["stream"] = True
    tool_names = fit_names(made)
    return SurfaceRequest(
        _encode(made),
        tuple(untranslatable),
        echo=shows_thoughts,
        fields=made,
        is_translated=True,
        warnings=tuple(warnings),
        tool_names=tool_names,
    )
