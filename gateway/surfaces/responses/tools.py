"""Translates tools and the choice among them (https://platform.openai.com/docs/guides/tools)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import ValidationError

Json = dict[str, Any]

_FUNCTION_FIELDS = ("name", "description", "parameters", "strict")
_WORDS = ("none", "auto", "required")


def chat_tools(tools: Any, untranslatable: list[str]) -> list[Json]:
    """Returns the tools that a chat completion can offer; the provider's own are added to `untranslatable`. Raises
    ValidationError, which names the tool."""
    if not isinstance(tools, list):
        raise ValidationError("tools: expected a list")
    made = []
    for index, tool in enumerate(tools):
        place = f"tools[{index}]"
        if not isinstance(tool, Mapping) or not isinstance(tool.get("type"), str):
            raise ValidationError(f"{place}.type: this field is required", code="missing_field")
        kind = tool["type"]
        if kind in ("function", "custom") and not isinstance(tool.get("name"), str):
            raise ValidationError(f"{place}.name: this field is required", code="missing_field")
        if kind == "function":
            function = {name: tool[name] for name in _FUNCTION_FIELDS if tool.get(name) is not None}
            made.append({"type": "function", "function": function})
        elif kind == "custom":
            made.append({"type": "custom", "custom": _custom(tool)})
        else:
            untranslatable.append(f"{place}: the tool {kind!r} runs at the provider, and this one does not have it")
    return made


def _custom(tool: Mapping[str, Any]) -> Json:
    custom = {name: tool[name] for name in ("name", "description") if tool.get(name) is not None}
    form = tool.get("format")
    if isinstance(form, Mapping) and form.get("type") == "grammar":
        grammar = {name: value for name, value in form.items() if name != "type"}
        return {**custom, "format": {"type": "grammar", "grammar": grammar}}
    return {**custom, "format": form} if form is not None else custom


def chat_tool_choice(choice: Any, untranslatable: list[str]) -> str | Json | None:
    """Returns the choice in a chat completion's form; None for a choice of a tool that runs at the provider."""
    if isinstance(choice, str):
        if choice not in _WORDS:
            raise ValidationError("tool_choice: expected none, auto, required or an object")
        return choice
    if not isinstance(choice, Mapping):
        raise ValidationError("tool_choice: expected a string or an object")
    kind = choice.get("type")
    if kind in ("function", "custom"):
        return {"type": kind, kind: {"name": choice.get("name")}}
    if kind == "allowed_tools":
        allowed = [_named(tool) for tool in choice.get("tools") or () if isinstance(tool, Mapping)]
        return {"type": kind, kind: {"mode": choice.get("mode", "auto"), "tools": allowed}}
    untranslatable.append(f"tool_choice: the tool {kind!r} runs at the provider, and this one does not have it")
    return None


def _named(tool: Mapping[str, Any]) -> Json:
    kind = str(tool.get("type"))
    return {"type": kind, kind: {"name": tool.get("name")}}
