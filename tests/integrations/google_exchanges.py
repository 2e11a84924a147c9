"""Invented answers of Gemini."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}


def answer(
    *parts: Mapping[str, Any], finish: Any = "STOP", candidate: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Returns a response with one candidate; `finish` is None for an event before the last."""
    choice: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **(candidate or {})}
    if finish is not None:
        choice["finishReason"] = finish
    return {"candidates": [choice], "usageMetadata": USAGE, "modelVersion": "gemini-x", "responseId": "resp-1", **more}


def call(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"a": "ö"}, **more}}


def body(response: Any) -> bytes:
    return json.dumps(response, indent=2, ensure_ascii=False).encode()


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\r\n\r\n" for event in events)
