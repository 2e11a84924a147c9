"""Tests fields that only Bedrock's answers have: they reach the client in `provider_specific_fields`, whole and
streamed, and come back a turn later."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator

from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.request import build_body
from tests.integrations.bedrock_exchanges import CLAUDE, NOVA, bedrock_request

SHAPE: Any = Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
LLAMA = "us.meta.llama4-scout-17b-instruct-v1:0"
USER: dict[str, Any] = {"role": "user", "content": "Hi"}
USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
TRACE = {
    "guardrail": {"inputAssessment": {"g": {"wordPolicy": {"customWords": [{"match": "x", "action": "BLOCKED"}]}}}}
}
PAGE = {"location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}}, "sourceContent": [{"text": "is"}]}
CITED: dict[str, Any] = {"citationsContent": {"content": [{"text": "It is. "}], "citations": [PAGE]}}
CALL: dict[str, Any] = {"toolUse": {"toolUseId": "c", "name": "look", "input": {"a": 1}}}
THOUGHT: dict[str, Any] = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def answered(*blocks: dict[str, Any], model: str = CLAUDE, stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    body = {"output": {"message": {"content": list(blocks)}}, "stopReason": stop, "usage": USAGE, **more}
    parsed = ADAPTER.parse_response(bedrock_request(model), json.dumps(body).encode())
    message: dict[str, Any] = json.loads(parsed.body)["choices"][0]["message"]
    return message


def sent_back(message: dict[str, Any], model: str = CLAUDE, **fields: Any) -> list[dict[str, Any]]:
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in message.get("tool_calls", ())]
    body, _ = build_body(bedrock_request(model, messages=[USER, message, *results, USER], **fields))
    report = ParamValidator().validate({"modelId": model, **body}, SHAPE)
    assert not report.has_errors(), report.generate_report()
    content: list[dict[str, Any]] = body["messages"][1]["content"]
    return content


def test_history__cited_text_and_calls__as_they_were() -> None:
    blocks = [THOUGHT, {"text": "Yes. "}, CITED, {"text": "So."}, CALL]
    assert sent_back(answered(*blocks, stop="tool_use"), tools=[TOOL]) == blocks


def test_history__model_without_such_blocks__their_text() -> None:
    assert sent_back(answered({"text": "Yes. "}, CITED), LLAMA) == [{"text": "Yes. "}, {"text": "It is. "}]


@pytest.mark.parametrize("fields", ["x", 7, [], [{"content": []}], {"content": None}, {"trace": TRACE}])
def test_history__fields_of_any_form__no_matter(fields: Any) -> None:
    message = {"role": "assistant", "content": "Yes.", "provider_specific_fields": fields}
    for model in (CLAUDE, NOVA, LLAMA):
        assert sent_back(message, model) == [{"text": "Yes."}]
