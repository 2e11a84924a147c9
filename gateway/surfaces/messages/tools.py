"""Translates tools and the choice among them."""

from __future__ import annotations

from typing import Any

from gateway.surfaces.checks import (
    as_object,
    field_of,
    invalid,
    optional_flag,
    optional_list,
    optional_object,
    optional_text,
    required_name,
    required_object,
)

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_TRANSLATED = frozenset({"type", "name", "description", "input_schema", "strict"})
# Code that Anthropic runs may call a tool; `direct` is the model's own call.
_DIRECT = "direct"

Json = dict[str, Any]


def read_tools(fields: Json, untranslatable: list[str]) -> Json:
    """Returns `tools`, `tool_choice` and `parallel_tool_calls` of the chat completion, as far as there are any. Raises
    ValidationError."""
    tools = optional_list(fields, "tools") or []
    made = [_tool(as_object(tool, f"tools[{n}]"), f"tools[{n}]", untranslatable) for n, tool in enumerate(tools)]
    choice = _choice(optional_object(fields, "tool_choice"))
    return {"tools": made, **choice} if made else {}


def _tool(tool: Json, place: str, untranslatable: list[str]) -> Json:
    """Returns the tool as a function. A tool of the vendor's is returned unchanged, and `untranslatable` names it."""
    kind = optional_text(tool, "type", place)
    if kind not in (None, "custom"):
        untranslatable.append(f"{place}: only Anthropic's hosts have the tool {kind}")
        return tool
    name = required_name(tool, "name", place)
    schema = required_object(tool, "input_schema", place)
    function: Json = {"name": name, "parameters": schema}
    if description := optional_text(tool, "description", place):
        function["description"] = description
    if optional_flag(tool, "strict", place):
        function["strict"] = True
    callers = optional_list(tool, "allowed_callers", place)
    if callers and _DIRECT not in callers:
        untranslatable.append(f"{place}.allowed_callers: only Anthropic's hosts run code that calls tools")
    return {"type": "function", "function": function, **_beside(tool)}


def _beside(tool: Json) -> Json:
    """Returns the fields of the tool that stand beside the function, such as its cache marker."""
    return {name: value for name, value in tool.items() if name not in _TRANSLATED and value is not None}


def _choice(choice: Json | None) -> Json:
    if choice is None:
        return {}
    place = "tool_choice"
    kind = required_name(choice, "type", place)
    if kind == "tool":
        made: Json = {"tool_choice": {"type": "function", "function": {"name": required_name(choice, "name", place)}}}
    elif kind in _CHOICES:
        made = {"tool_choice": _CHOICES[kind]}
    else:
        raise invalid(field_of(place, "type"), "expected auto, any, tool or none")
    if optional_flag(choice, "disable_parallel_tool_use", place):
        made["parallel_tool_calls"] = False
    return made
