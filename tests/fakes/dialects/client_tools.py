"""Tools of the Responses API that the client runs and that are no plain functions: those of a namespace, custom ones,
and the search for tools (https://developers.openai.com/api/docs/guides/tools-tool-search).

A story knows a function of a namespace as `namespace__name`, a custom tool's text as the argument `input`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from openai.types.responses import (
    NamespaceToolParam,
    ResponseToolSearchOutputItemParamParam,
    ToolSearchToolParam,
    WebSearchToolParam,
)
from openai.types.responses.response_input_item_param import AdditionalTools, ToolSearchCall

from tests.fakes.dialects.story import Call, Story

Json = Mapping[str, Any]

SEARCH = "tool_search"
ITEMS: Mapping[str, set[str]] = {
    "tool_search_call": {*ToolSearchCall.__annotations__},
    "tool_search_output": {*ResponseToolSearchOutputItemParamParam.__annotations__},
    "additional_tools": {*AdditionalTools.__annotations__},
}
TOOLS: Mapping[str, set[str]] = {
    "namespace": {*NamespaceToolParam.__annotations__},
    "tool_search": {*ToolSearchToolParam.__annotations__},
    # Codex names the kinds of content that it can show.
    "web_search": {*WebSearchToolParam.__annotations__, "external_web_access", "search_content_types"},
}


@dataclass(frozen=True)
class ClientCall(Call):
    kind: str = "function"
    namespace: str = ""


def tools_of(fields: Json) -> list[Json]:
    items = fields["input"] if isinstance(fields["input"], list) else []
    brought = (item["tools"] for item in items if item.get("type") in ("additional_tools", "tool_search_output"))
    return [*(fields.get("tools") or ()), *(tool for tools in brought for tool in tools)]


def with_names(tools: Iterable[Json]) -> Iterator[tuple[str, Json, str]]:
    for tool in tools:
        if tool["type"] == "namespace":
            yield from ((f"{tool['name']}__{inner['name']}", inner, tool["name"]) for inner in tool["tools"])
        else:
            yield tool.get("name", tool["type"]), tool, ""


def addressed(story: Story, body: bytes) -> Story:
    fields = json.loads(body)
    tools = {name: (tool, namespace) for name, tool, namespace in with_names(tools_of(fields))}
    return replace(story, calls=tuple(_addressed(call, *tools[call.name]) for call in story.calls))


def _addressed(call: Call, tool: Json, namespace: str) -> ClientCall:
    return ClientCall(call.id, tool.get("name", call.name), call.arguments, tool["type"], namespace)


def item_of(call: Call) -> dict[str, Any]:
    given = json.dumps(call.arguments, ensure_ascii=False)
    item = {"status": "completed", "call_id": call.id}
    match call:
        case ClientCall(kind="custom"):
            shown = {"name": call.name, "input": call.arguments["input"]}
            return {"id": f"ctc_{call.id}", "type": "custom_tool_call", **item, **shown}
        case ClientCall(kind="tool_search"):
            shown = {"execution": "client", "arguments": dict(call.arguments)}
            return {"id": f"tsc_{call.id}", "type": "tool_search_call", **item, **shown}
        case ClientCall(namespace=namespace) if namespace:
            item["namespace"] = namespace
    return {"id": f"fc_{call.id}", "type": "function_call", **item, "name": call.name, "arguments": given}
