"""Converts a recorded body of the Messages API to the equivalent OpenAI-format request. Everything that OpenAI's
dialect can express is translated; the rest (blocks of the vendor's own tools, uploaded files) becomes native content
parts, which the adapter passes on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

_SAME_NAME = (
    "cache_control",
    "container",
    "context_management",
    "max_tokens",
    "mcp_servers",
    "service_tier",
    "temperature",
    "thinking",
    "top_k",
    "top_p",
)
_CHOICES = {"none": "none", "auto": "auto", "any": "required"}
_THOUGHTS = ("thinking", "redacted_thinking")


def openai_fields(body: Mapping[str, Any]) -> Json:
    messages = _system(body.get("system"))
    for message in body["messages"]:
        messages += _assistant(message) if message["role"] == "assistant" else _user(message)
    fields: Json = {"model": body["model"], "messages": messages}
    fields |= {name: body[name] for name in _SAME_NAME if name in body}
    if body.get("stream"):
        fields["stream"] = True
    if "stop_sequences" in body:
        fields["stop"] = body["stop_sequences"]
    if "metadata" in body:
        fields["user"] = body["metadata"]["user_id"]
    fields |= _tools(body) | _output(body)
    return fields


def _system(system: str | list[Json] | None) -> list[Json]:
    if not system:
        return []
    return [{"role": "system", "content": system if isinstance(system, str) else list(system)}]


def _user(message: Json) -> list[Json]:
    if isinstance(message["content"], str):
        return [message]
    results = [_result(block) for block in message["content"] if block["type"] == "tool_result"]
    parts = [_part(block) for block in message["content"] if block["type"] != "tool_result"]
    return [*results, {"role": "user", "content": parts}] if parts else results


def _result(block: Json) -> Json:
    content = block.get("content", "")
    message = {
        "role": "tool",
        "tool_call_id": block["tool_use_id"],
        "content": content if isinstance(content, str) else [_part(part) for part in content],
    }
    return message | {name: block[name] for name in ("is_error", "cache_control") if name in block}


def _part(block: Json) -> Json:
    marker = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    source = block.get("source") or {}
    if block["type"] == "image" and source["type"] in ("base64", "url"):
        return {"type": "image_url", "image_url": {"url": _url(source)}, **marker}
    if block["type"] == "document" and source["type"] in ("base64", "url") and not block.get("citations"):
        named = {"name": block["title"]} if "title" in block else {}
        return {"type": "document_url", "document_url": {"url": _url(source)}, **named, **marker}
    return block


def _url(source: Json) -> str:
    return source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"


def _assistant(message: Json) -> list[Json]:
    content = message["content"]
    if isinstance(content, str):
        return [message]
    thoughts = _while(content, lambda block: block["type"] in _THOUGHTS)
    calls = list(reversed(_while(reversed(content), lambda block: block["type"] == "tool_use")))
    between = content[len(thoughts) : len(content) - len(calls)]
    answer: Json = {"role": "assistant", "content": between or None}
    if thoughts:
        answer["reasoning_details"] = [_detail(block, index) for index, block in enumerate(thoughts)]
    if calls:
        answer["tool_calls"] = [_call(block) for block in calls]
    return [answer]


def _while(blocks: Iterable[Json], holds: Any) -> list[Json]:
    found = []
    for block in blocks:
        if not holds(block):
            break
        found.append(block)
    return found


def _detail(block: Json, index: int) -> Json:
    shared = {"format": "anthropic-claude-v1", "index": index}
    if block["type"] == "redacted_thinking":
        return {"type": "reasoning.encrypted", "data": block["data"], **shared}
    return {"type": "reasoning.text", "text": block["thinking"], "signature": block["signature"], **shared}


def _call(block: Json) -> Json:
    function = {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)}
    marker = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    return {"id": block["id"], "type": "function", "function": function, **marker}


def _tools(body: Mapping[str, Any]) -> Json:
    fields: Json = {}
    if "tools" in body:
        fields["tools"] = [_tool(tool) for tool in body["tools"]]
    choice = body.get("tool_choice")
    if choice is not None:
        named = {"type": "function", "function": {"name": choice.get("name")}}
        fields["tool_choice"] = named if choice["type"] == "tool" else _CHOICES[choice["type"]]
        if choice.get("disable_parallel_tool_use"):
            fields["parallel_tool_calls"] = False
    return fields


def _tool(tool: Json) -> Json:
    if tool.get("type", "custom") != "custom":
        return tool
    function = {"name": tool["name"], "parameters": tool["input_schema"]}
    function |= {name: tool[name] for name in ("description", "strict") if name in tool}
    extra = {name: value for name, value in tool.items() if name not in (*function, "type", "input_schema")}
    return {"type": "function", "function": function, **extra}


def _output(body: Mapping[str, Any]) -> Json:
    config = body.get("output_config") or {}
    fields: Json = {"reasoning_effort": config["effort"]} if "effort" in config else {}
    # The beta had the answer's format in `output_format`, which is now in `output_config`.
    answer_format = config.get("format") or body.get("output_format")
    if answer_format:
        schema = {"name": "answer", "schema": answer_format["schema"], "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields
