from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.guardrails.detectors.characters import plain


def tools_of(fields: Mapping[str, Any]) -> Iterator[str]:
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
    return plain(name).strip().casefold()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(tool: Any) -> Iterator[str]:
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
