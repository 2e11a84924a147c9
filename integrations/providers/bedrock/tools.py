"""https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolConfiguration.html"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from integrations.providers.bedrock.models import Model
from integrations.providers.common.claude import takes_forced_tools
from integrations.providers.common.conversation import Conversation, ToolCall
from integrations.providers.common.parameters import (
    FunctionTool,
    Mapped,
    ToolChoice,
    function_tools,
    has_filter,
    tool_choice,
)

# Tools in Converse's own form pass unchanged; `systemTool` is one of Amazon's, such as `nova_grounding`.
_NATIVE = ("toolSpec", "systemTool", "cachePoint")
_GROUNDING = {"systemTool": {"name": "nova_grounding"}}
# The default of OpenAI's own search needs no warning.
_DEFAULT_SEARCH = {"search_context_size": "medium"}
_FIRST_STRICT = (4, 5)

_ANY_INPUT = {"type": "object", "properties": {}}

Choice = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolConfig:
    """The `toolConfig` of a request, empty without `tools`. `for_history_only`: the tools are listed only because the
    history names them."""

    tools: list[dict[str, Any]]
    choice: Choice | None = None
    for_history_only: bool = False


def tool_config(mapped: Mapped, model: Model, conversation: Conversation) -> ToolConfig:
    """Converse has no choice `none` and refuses a history of calls without a `toolConfig`.

    For such a history the tools stay, an instruction forbids calls, and a call in the answer is left out.
    """
    functions, others = function_tools(mapped)
    choice = tool_choice(mapped)
    native, search = [_native(mapped, tool) for tool in others], _search(mapped, model)
    called = _called(conversation)
    if (choice is not None and choice.kind == "none") or not (functions or native or search):
        known = {function.name for function in functions}
        functions += [FunctionTool(name, "", _ANY_INPUT) for name in called if name not in known]
        offered = [tool for function in functions for tool in _tool(mapped, model, function)] if called else []
        return ToolConfig(offered + search, for_history_only=bool(offered))
    if choice is not None and choice.allowed:
        functions = [function for function in functions if function.name in choice.allowed]
    tools: list[dict[str, Any]] = []
    for function in functions:
        tools += _tool(mapped, model, function)
    is_forced = choice is not None and choice.kind in ("required", "function")
    if is_forced and not takes_forced_tools(model.family, model.version):
        raise mapped.refuse("tool_choice", f"{model.name} cannot be made to call a tool")
    return ToolConfig(tools + native + [tool for tool in search if tool not in native], _choice(choice))


def with_forced(config: ToolConfig, function: FunctionTool) -> ToolConfig:
    spec = {"name": function.name, "description": function.description, "inputSchema": {"json": _schema(function)}}
    choice: Choice = {"any": {}} if config.tools and not config.for_history_only else {"tool": {"name": function.name}}
    return ToolConfig([*config.tools, {"toolSpec": spec}], choice)


def _search(mapped: Mapped, model: Model) -> list[dict[str, Any]]:
    """Raises UnsupportedParameterError for a model without web search, which would answer from memory."""
    options = mapped.take("web_search_options")
    if options is None:
        return []
    if not model.searches_the_web:
        raise mapped.refuse("web_search_options", f"{model.name} does not search the web")
    if has_filter(options):
        raise mapped.refuse("web_search_options", f"{model.name} does not search chosen sites")
    for name, value in options.items() if isinstance(options, Mapping) else ():
        if value is not None and value != _DEFAULT_SEARCH.get(name):
            mapped.drop(f"web_search_options.{name}")
    return [_GROUNDING]


def system_tools(fields: Mapping[str, Any]) -> set[str]:
    tools = [tool for tool in fields.get("tools") or () if isinstance(tool.get("systemTool"), Mapping)]
    if fields.get("web_search_options") is not None:
        tools.append(_GROUNDING)
    return {str(tool["systemTool"].get("name")) for tool in tools}


def forbids_calls(fields: Mapping[str, Any]) -> bool:
    return fields.get("tool_choice") == "none"


def _called(conversation: Conversation) -> list[str]:
    blocks = (block for turn in conversation.turns for block in turn.blocks)
    return list(dict.fromkeys(block.name for block in blocks if isinstance(block, ToolCall)))


def additional_tool_choice(mapped: Mapped, model: Model, choice: Choice | None) -> dict[str, Any] | None:
    """Claude's own `tool_choice`, which replaces Converse's; only it can forbid parallel calls."""
    if mapped.take("parallel_tool_calls") is not False:
        return None
    if not model.is_claude:
        mapped.drop("parallel_tool_calls")
        return None
    native: dict[str, Any] = {"type": "auto"}
    if choice and "any" in choice:
        native = {"type": "any"}
    elif choice and "tool" in choice:
        native = {"type": "tool", "name": choice["tool"]["name"]}
    return {**native, "disable_parallel_tool_use": True}


def _tool(mapped: Mapped, model: Model, function: FunctionTool) -> list[dict[str, Any]]:
    spec: dict[str, Any] = {"name": function.name, "inputSchema": {"json": _schema(function)}}
    if function.description:
        spec["description"] = function.description
    if function.strict:
        if model.is_claude and model.version >= _FIRST_STRICT:
            spec["strict"] = True
        else:
            mapped.drop(f"tools.{function.name}.strict")
    marker = function.extra.get("cache_control")
    if not isinstance(marker, Mapping) or not marker or not model.caches_tools:
        return [{"toolSpec": spec}]
    point: dict[str, Any] = {"type": "default", **({"ttl": marker["ttl"]} if marker.get("ttl") else {})}
    return [{"toolSpec": spec}, {"cachePoint": point}]


def _schema(function: FunctionTool) -> Mapping[str, Any]:
    return function.parameters if "type" in function.parameters else {"type": "object", **function.parameters}


def _native(mapped: Mapped, tool: Mapping[str, Any]) -> dict[str, Any]:
    for name in _NATIVE:
        if isinstance(tool.get(name), Mapping):
            return {name: tool[name]}
    raise mapped.refuse("tools", f"a tool of type {tool.get('type')!r} has no counterpart at Bedrock")


def _choice(choice: ToolChoice | None) -> Choice | None:
    if choice is None:
        return None
    if choice.kind == "required":
        return {"any": {}}
    return {"tool": {"name": choice.function}} if choice.kind == "function" else {"auto": {}}
