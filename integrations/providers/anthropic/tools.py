"""https://docs.anthropic.com/en/docs/agents-and-tools/tool-use"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from integrations.providers.anthropic.models import Rules
from integrations.providers.anthropic.schema import accepted_schema
from integrations.providers.common.parameters import FunctionTool, Mapped, ToolChoice, function_tools, tool_choice

# The Messages API takes several additional fields of a tool, such as `cache_control`.
_EXTRAS = ("allowed_callers", "cache_control", "defer_loading", "eager_input_streaming", "input_examples")
# The types of the vendor's own tools end in the date of their version; the tools of a server are a toolset without a
# date.
_OWN_TYPE = re.compile(r"_\d{8}$")
_CHOICES = {"none": "none", "auto": "auto", "required": "any"}
# Every model with the search tool takes its version of March 2025; later ones filter results with code that has to be
# allowed.
_SEARCH_TYPE = "web_search_20250305"
_SEARCH_TYPES = "web_search_"
# Each size is translated to a maximum number of searches; without a size the vendor sets no maximum.
_MAX_USES = {"low": 1, "medium": 5, "high": 10}
_PLACE_FIELDS = ("city", "country", "region", "timezone")

Json = dict[str, Any]


def tools_and_choice(mapped: Mapped, rules: Rules) -> tuple[list[Json], Json | None]:
    functions, others = function_tools(mapped)
    choice = tool_choice(mapped)
    parallel = mapped.take("parallel_tool_calls")
    if choice is not None and choice.allowed:
        functions, others = [tool for tool in functions if tool.name in choice.allowed], []
    tools = _in_order(mapped, functions, others, rules)
    if search := _search_tool(mapped, tools):
        tools.append(search)
    if not tools:
        return [], None
    if choice is not None and choice.kind in ("required", "function") and not rules.forced_tools:
        # The restriction is described at
        # https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5#forced-tool-use-is-not-supported
        raise mapped.refuse("tool_choice", "this model cannot be forced to call a tool; use auto")
    return tools, _choice(choice, parallel=parallel is not False)


def _in_order(
    mapped: Mapped, functions: list[FunctionTool], others: list[Mapping[str, Any]], rules: Rules
) -> list[Json]:
    """Keeps the request's order, on which the prompt cache depends."""
    if not others:
        return [_function(tool, mapped, rules) for tool in functions]
    waiting = iter(functions)
    own = {id(tool) for tool in others}
    return [
        _own(tool, mapped) if id(tool) in own else _function(next(waiting), mapped, rules)
        for tool in mapped.fields["tools"]
    ]


def _function(tool: FunctionTool, mapped: Mapped, rules: Rules) -> Json:
    schema = tool.parameters
    if "type" not in schema:
        schema = {"type": "object", **schema}
    described: Json = {"name": tool.name}
    if tool.description:
        described["description"] = tool.description
    if tool.strict and rules.schema:
        schema = accepted_schema(schema)
        described["strict"] = True
    elif tool.strict:
        mapped.drop("tools[].function.strict", "this model follows no schema strictly")
    described["input_schema"] = schema
    for name, value in tool.extra.items():
        if name in _EXTRAS:
            described[name] = value
        else:
            mapped.drop(f"tools[].{name}")
    return described


def _own(tool: Mapping[str, Any], mapped: Mapped) -> Json:
    kind = tool.get("type")
    if kind in (None, "custom") and isinstance(tool.get("input_schema"), Mapping) and tool.get("name"):
        return dict(tool)  # The tool is a function in the vendor's own form.
    if kind == "mcp_toolset" or (isinstance(kind, str) and _OWN_TYPE.search(kind)):
        return dict(tool)
    raise mapped.refuse("tools", f"anthropic has no tool of type {kind!r}")


def _choice(choice: ToolChoice | None, *, parallel: bool) -> Json | None:
    if choice is None:
        return None if parallel else {"type": "auto", "disable_parallel_tool_use": True}
    if choice.kind == "function":
        chosen: Json = {"type": "tool", "name": choice.function}
    else:
        chosen = {"type": _CHOICES[choice.kind]}
    if not parallel and choice.kind != "none":
        chosen["disable_parallel_tool_use"] = True
    return chosen


def _search_tool(mapped: Mapped, tools: list[Json]) -> Json | None:
    """The vendor's search tool to add (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool);
    None if the request asks for no search, or names such a tool itself."""
    options = mapped.take("web_search_options")
    if not isinstance(options, Mapping):
        return None
    if any(str(tool.get("type")).startswith(_SEARCH_TYPES) for tool in tools):
        mapped.drop("web_search_options", "the tools hold a search already")
        return None
    tool: Json = {"type": _SEARCH_TYPE, "name": "web_search"}
    for name, value in options.items():
        if name == "search_context_size" and value in _MAX_USES:
            tool["max_uses"] = _MAX_USES[value]
        elif name == "user_location" and (place := _place(value)):
            tool["user_location"] = place
        elif name == "filters" and isinstance(value, Mapping):
            tool |= {sites: named for sites, named in value.items() if named}
        elif value is not None:
            mapped.drop(f"web_search_options.{name}")
    return tool


def _place(location: Any) -> Json:
    """Chat completions nest the place in `approximate`; the Responses API and the vendor do not."""
    if not isinstance(location, Mapping):
        return {}
    nested = location.get("approximate")
    named = nested if isinstance(nested, Mapping) else location
    place = {name: named[name] for name in _PLACE_FIELDS if isinstance(named.get(name), str) and named[name]}
    return {"type": "approximate", **place} if place else {}
