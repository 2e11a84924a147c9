"""Builds requests to the Messages API for the tests of its adapter."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import UpstreamRequest
from tests.integrations.exchanges import credentials, listed_request

USER = {"role": "user", "content": "Hello"}
PING = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}
# The constants name one model of each generation of rules.
OLD, BUDGETS, BOTH, ADAPTIVE = "claude-3-5-sonnet-20241022", "claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5"


def upstream(model: str = BUDGETS, **fields: Any) -> UpstreamRequest:
    request = listed_request("anthropic", model, **{"messages": [USER], **fields})
    return ADAPTER.build_request(request, credentials("anthropic"))


def body_of(model: str = BUDGETS, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(upstream(model, **fields).body)
    return body


def messages_of(*messages: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    converted: list[dict[str, Any]] = body_of(messages=list(messages), **fields)["messages"]
    return converted


THOUGHT, HIDDEN = {"type": "thinking", "thinking": "hm", "signature": "s1"}, {"type": "redacted_thinking", "data": "d2"}
FIRST, SECOND = ({"type": "tool_use", "id": f"toolu_{n}", "name": "ping", "input": {}} for n in (1, 2))
