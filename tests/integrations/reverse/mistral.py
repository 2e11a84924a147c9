"""Converts a recorded Mistral request to the OpenAI-format request that a client of the gateway would send for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.mistral.response import FORMAT

_RENAMED = {"random_seed": "seed"}


def as_openai(native: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request. Mistral's own fields (`safe_prompt`, `prompt_mode`, `top_k`…) stay, since clients send them
    unchanged."""
    fields = {_RENAMED.get(name, name): value for name, value in native.items()}
    fields["messages"] = [_message(message) for message in native["messages"]]
    if fields.get("tool_choice") == "any":
        fields["tool_choice"] = "required"
    return fields


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    converted, content = dict(message), message.get("content")
    if not isinstance(content, list):
        return converted
    converted["content"] = [_part(part) for part in content if part["type"] != "thinking"]
    details = [_detail(part) for part in content if part["type"] == "thinking"]
    if details:
        converted["reasoning_details"] = details
    return converted


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "document_url":
        named = {"name": part["document_name"]} if "document_name" in part else {}
        return {"type": "document_url", "document_url": {"url": part["document_url"]}, **named}
    if part["type"] == "input_audio":
        return {"type": "input_audio", "input_audio": {"data": part["input_audio"], "format": "wav"}}
    return dict(part)


def _detail(part: Mapping[str, Any]) -> dict[str, Any]:
    text = "".join(piece.get("text", "") for piece in part["thinking"])
    signed = {"signature": part["signature"]} if part.get("signature") else {}
    return {"type": "reasoning.text", "text": text, "format": FORMAT, **signed}
