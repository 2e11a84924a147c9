"""Builds requests to Mistral for the tests of its adapter. Every body has to fit the types of the vendor's SDK."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.base import ChatRequest
from integrations.providers.mistral import ADAPTER
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.mistral_sdk import assert_accepted

SMALL = "mistral-small-latest"
USER: dict[str, Any] = {"role": "user", "content": "Hallo"}


def build(request: ChatRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    upstream_request = ADAPTER.build_request(request, credentials("mistral"))
    body: dict[str, Any] = json.loads(upstream_request.body)
    assert_accepted(body)
    return body, upstream_request.warnings


def built(model: str = SMALL, **fields: Any) -> dict[str, Any]:
    return build(chat_request(model, **fields))[0]


def called(call_id: str, name: str = "ping", **more: Any) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def result(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}
