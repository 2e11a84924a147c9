"""https://ai.google.dev/gemini-api/docs/function-calling"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.common.parameters import (
    FunctionTool,
    Mapped,
    ToolChoice,
    function_tools,
    has_filter,
    tool_choice,
)
from integrations.providers.google.field_names import camel, spellings
from integrations.providers.google.schema import google_schema, is_own

_FUNCTIONS = "functionDeclarations"
# The native tools are listed at https://ai.google.dev/api/caching#Tool,
# https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/Tool
_NATIVE = spellings(
    (
        "googleSearch",
        "googleSearchRetrieval",
        "googleMaps",
        "codeExecution",
        "urlContext",
        "fileSearch",
        "computerUse",
        "enterpriseWebSearch",
        "retrieval",
        "mcpServers",
        "parallelAiSearch",
        "exaAiSearch",
        _FUNCTIONS,
    )
)
_SEARCH: dict[str, Any] = {"googleSearch": {}}


def write_tools(mapped: Mapped, body: dict[str, Any], *, mixes: bool) -> None:
    """Sets `tools` and `toolConfig`. `mixes`: the model takes functions and Google's own tools together, if its answer
    may show the tools' steps. Raises UnsupportedParameterError."""
    functions, others = function_tools(mapped)
    tools: list[dict[str, Any]] = []
    if functions:
        tools.append({_FUNCTIONS: [_declaration(function) for function in functions]})
        if any(function.strict for function in functions):
            mapped.drop("tools[].function.strict")
    tools += [_native(mapped, tool) for tool in others]
    _add_search(mapped, tools)
    if tools:
        body["tools"] = tools
    has_functions = any(camel(name) == _FUNCTIONS for tool in tools for name in tool)
    config = _tool_config(mapped, tool_choice(mapped), has_functions=has_functions)
    if mixes and has_functions and any(camel(name) != _FUNCTIONS for tool in tools for name in tool):
        _mix(config)
    if config:
        body["toolConfig"] = config
    if mapped.take("parallel_tool_calls") is False and has_functions:
        mapped.drop("parallel_tool_calls")


def _add_search(mapped: Mapped, tools: list[dict[str, Any]]) -> None:
    search = mapped.take("web_search_options")
    if search is None:
        return
    if not isinstance(search, Mapping):
        raise mapped.refuse("web_search_options", "expected an object")
    if has_filter(search):
        raise mapped.refuse("web_search_options", "Google does not search chosen sites")
    for name in (name for name, value in search.items() if value):
        mapped.drop(f"web_search_options.{name}")
    if not any(camel(name) in _SEARCH for tool in tools for name in tool):
        tools.append(dict(_SEARCH))


def _declaration(function: FunctionTool) -> dict[str, Any]:
    declaration: dict[str, Any] = {"name": function.name}
    if function.description:
        declaration["description"] = function.description
    if is_own(function.parameters):
        declaration["parameters"] = function.parameters
    else:
        declaration["parametersJsonSchema"] = google_schema(function.parameters)
    return declaration


def _native(mapped: Mapped, tool: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: value for name, value in tool.items() if name in _NATIVE}
    if named:
        return named
    kind = str(tool.get("type") or "")
    if kind not in _NATIVE:
        raise mapped.refuse("tools", f"{mapped.provider} has no tool of type {kind!r}")
    return {_NATIVE[kind]: {name: value for name, value in tool.items() if name not in ("type", "cache_control")}}


def _tool_config(mapped: Mapped, choice: ToolChoice | None, *, has_functions: bool) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for name in ("toolConfig", "tool_config"):
        native = mapped.take(name)
        if isinstance(native, Mapping):
            config |= {camel(key): value for key, value in native.items()}
    if choice is None or "functionCallingConfig" in config:
        return config
    if not has_functions:
        if choice.kind in ("required", "function"):
            raise mapped.refuse("tool_choice", "there is no function to call")
        return config
    config["functionCallingConfig"] = _calling(choice)
    return config


def _mix(config: dict[str, Any]) -> None:
    """Google refuses a mix of tools without the first field, and with the mode `AUTO`:
    https://ai.google.dev/gemini-api/docs/tool-combination"""
    config.setdefault("includeServerSideToolInvocations", True)
    if config.get("functionCallingConfig") == {"mode": "AUTO"}:
        config["functionCallingConfig"] = {"mode": "VALIDATED"}


def _calling(choice: ToolChoice) -> dict[str, Any]:
    if choice.kind == "none":
        return {"mode": "NONE"}
    if choice.kind == "function":
        return {"mode": "ANY", "allowedFunctionNames": [choice.function]}
    if choice.allowed:
        # Google refuses a list of names under AUTO, while VALIDATED leaves the model the choice among the named
        # functions.
        return {
            "mode": "ANY" if choice.kind == "required" else "VALIDATED",
            "allowedFunctionNames": list(choice.allowed),
        }
    return {"mode": "ANY" if choice.kind == "required" else "AUTO"}
