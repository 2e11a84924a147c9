"""Messages and tool calls for the tests of the input stage."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gateway.guardrails.verdicts import VERDICTS, GuardrailVerdict
from tests.gateway.service import Gateway


def verdicts(project: Gateway, response: Any) -> list[tuple[str, str, str]]:
    encoded = project.record(response).attributes.get(VERDICTS, "[]")
    found = msgspec.json.decode(encoded, type=list[GuardrailVerdict])
    return [(verdict.guardrail, verdict.action, verdict.detail) for verdict in found]


def user_message(content: Any, **extra: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content, **extra}]


def call(name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


def result(content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c1", "content": content}


ASK = {"role": "user", "content": "What does it say?"}
