"""Converts a recorded Cohere request to the OpenAI-format request that a client of the gateway would send for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RENAMED = {"p": "top_p", "k": "top_k", "stop_sequences": "stop"}


def as_openai(native: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request. Cohere's own fields (`documents`, `citation_options`, `safety_mode`…) stay, since clients
    send them unchanged."""
    fields = {_RENAMED.get(name, name): value for name, value in native.items()}
    fields["messages"] = [_message(message) for message in native["messages"]]
    if "tool_choice" in native:
        fields["tool_choice"] = native["tool_choice"].lower()
    if "response_format" in native:
        fields["response_format"] = _response_format(native["response_format"])
    if "thinking" in native:
        budget = native["thinking"].get("token_budget")
        fields["thinking"] = {"type": native["thinking"]["type"], **({"budget_tokens": budget} if budget else {})}
    return fields


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    converted = dict(message)
    if message["role"] != "assistant":
        return converted
    content = message.get("content")
    if isinstance(content, list):
        thinking = "".join(part["thinking"] for part in content if part["type"] == "thinking")
        if thinking:
            converted["reasoning_content"] = thinking
            converted["content"] = [part for part in content if part["type"] != "thinking"]
    if "tool_plan" in converted:
        converted["reasoning_content"] = converted.pop("tool_plan")
    return converted


def _response_format(native: Mapping[str, Any]) -> dict[str, Any]:
    schema = native.get("json_schema")
    if schema is None:
        return dict(native)
    return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema, "strict": True}}
