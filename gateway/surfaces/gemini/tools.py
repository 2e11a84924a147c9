"""Translates tools and the choice among them (https://ai.google.dev/api/caching#Tool)."""

from __future__ import annotations

from typing import Any

from gateway.surfaces.checks import Json, field_of, invalid, optional_text, required_name
from gateway.surfaces.gemini.fields import message, optional_message, repeated
from gateway.surfaces.gemini.schema import json_schema

_FUNCTIONS = "functionDeclarations"
# A search of the web is the vendor's own at others.
_SEARCHES = frozenset({"googleSearch", "googleSearchRetrieval", "enterpriseWebSearch"})
_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto", "MODE_UNSPECIFIED": "auto"}
_CALLING = "functionCallingConfig"


def read_tools(fields: Json, untranslatable: list[str], warnings: list[str]) -> Json:
    """Returns `tools`, `tool_choice` and `web_search_options` of the chat completion, as far as there are any. Raises
    ValidationError."""
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
    """Returns the choice among the functions. What else Google's settings of tools hold stays in Google's form."""
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
