"""Tests answers that follow a schema by models without a parameter for it: they call a tool that no client sees."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.base import ChatRequest
from integrations.providers.bedrock import ADAPTER
from tests.integrations.adapters.assembled import assembled
from tests.integrations.bedrock_exchanges import CLAUDE, NOVA, bedrock_request, event
from tests.integrations.exchanges import decoded, run

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
RESPONSE_FORMAT = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}}
USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}


def schema_request(model: str = NOVA, **fields: Any) -> ChatRequest:
    return bedrock_request(model, **{"response_format": RESPONSE_FORMAT, **fields})


def answered(
    request: ChatRequest, blocks: list[dict[str, Any]], stop: str = "tool_use", size: int = 3
) -> dict[str, Any]:
    """Returns the message and its finish reason, which are the same whole and streamed."""
    body = {"output": {"message": {"content": blocks}}, "stopReason": stop, "usage": USAGE}
    whole = json.loads(ADAPTER.parse_response(request, json.dumps(body).encode()).body)["choices"][0]
    wire = event("messageStart", role="assistant")
    for index, block in enumerate(blocks):
        if "text" in block:
            wire += event("contentBlockDelta", contentBlockIndex=index, delta=block)
        else:
            use = block["toolUse"]
            start = {"toolUse": {name: value for name, value in use.items() if name != "input"}}
            wire += event("contentBlockStart", contentBlockIndex=index, start=start)
            arguments = json.dumps(use["input"]) if use["input"] else ""
            for place in range(0, len(arguments), size):
                piece = {"toolUse": {"input": arguments[place : place + size]}}
                wire += event("contentBlockDelta", contentBlockIndex=index, delta=piece)
        wire += event("contentBlockStop", contentBlockIndex=index)
    wire += event("messageStop", stopReason=stop) + event("metadata", usage=USAGE)
    streamed = assembled(decoded(run(ADAPTER.stream(request), [wire])))
    assert streamed["message"] == whole["message"]
    assert streamed["finish_reason"] == whole["finish_reason"]
    return {**whole["message"], "finish_reason": whole["finish_reason"]}


def use(name: str, **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": f"t_{name}", "name": name, "input": given}}


def test_answer__of_a_model_with_schemas__a_tool_of_that_name_is_a_call() -> None:
    assert answered(schema_request(CLAUDE), [use("reply", x=1)])["finish_reason"] == "tool_calls"
