"""Builds requests for Gemini for the tests of its adapter."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from integrations.providers.base import Media, UpstreamRequest
from integrations.providers.google import GEMINI, VERTEX
from tests.integrations.exchanges import chat_request, credentials

USER = {"role": "user", "content": "Hi"}
FLASH = "gemini-2.5-flash"


def built(
    model: str = FLASH, *, media: dict[str, Media] | None = None, vertex: bool = False, **fields: Any
) -> UpstreamRequest:
    request = replace(chat_request(model, **{"messages": [USER], **fields}), media=media or {})
    adapter = VERTEX if vertex else GEMINI
    access = credentials("google_vertex", project="p", location="europe-west4") if vertex else credentials("google")
    return adapter.build_request(request, access)


def body_of(model: str = FLASH, **fields: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(built(model, **fields).body)
    return decoded


def config_of(model: str = FLASH, **fields: Any) -> dict[str, Any]:
    config: dict[str, Any] = body_of(model, **fields).get("generationConfig", {})
    return config
