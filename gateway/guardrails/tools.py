"""Extracts the names of tools from a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.guardrails.detectors.characters import plain


def tools_of(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of tools that are offered, forced by `tool_choice`, or called in the conversation; the older
    `functions` are included."""
    for tool in (*_list(fields.get("tools")), *_list(fields.get("functions"))):
        yield from _names(tool)
    yield from _names(fields.get("tool_choice"))
    yield from _names(fields.get("function_call"))
    if fields.get("web_search_options") is not None:
        yield "web_search"
    for message in fields["messages"]:
        for call in (*_list(message.get("tool_calls")), message.get("function_call")):
            yield from _names(call)
        if message["role"] in ("tool", "function"):
            yield from _names(message)


def same_tool(name: str) -> str:
    """Returns the form that all spellings of one tool's name share: letter case and disguised letters are
    normalised."""
    return plain(name).strip().casefold()


def _list(value: Any) -> list[Any]:
    """Returns the value if it is a list, else an empty list: fields that pass through to providers can be of any
    type."""
    return value if isinstance(value, list) else []


def _names(tool: Any) -> Iterator[str]:
    """Yields a tool's names: `{"function": {"name"}}`, `{"name"}`, or the `type` of a tool that has no other name
    (`web_search`)."""
    if not isinstance(tool, Mapping):
        return
    kind = tool.get("type")
    inner = tool.get(kind) if isinstance(kind, str) else None
    holders = (tool, inner, tool.get("function"))
    named = (holder.get("name") for holder in holders if isinstance(holder, Mapping))
    yield from (name for name in named if isinstance(name, str))
    if isinstance(kind, str) and kind not in ("function", "custom"):
        yield kind
    if kind == "allowed_tools" and isinstance(inner, Mapping):
        for allowed in _list(inner.get("tools")):
            yield from _names(allowed)
