"""Tests fields that only Bedrock's answers have: they reach the client in `provider_specific_fields`, whole and
streamed, and come back a turn later."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator

from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.request import build_body
from tests.integrations.bedrock_exchanges import CLAUDE, NOVA, bedrock_request, event

SHAPE: Any = Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
LLAMA = "us.meta.llama4-scout-17b-instruct-v1:0"
USER: dict[str, Any] = {"role": "user", "content": "Hi"}
USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
TRACE = {
    "guardrail": {"inputAssessment": {"g": {"wordPolicy": {"customWords": [{"match": "x", "action": "BLOCKED"}]}}}}
}
PAGE = {"location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}}, "sourceContent": [{"text": "is"}]}
CITED: dict[str, Any] = {"citationsContent": {"content": [{"text": "It is. "}], "citations": [PAGE]}}
SEARCHED: list[dict[str, Any]] = [
    {"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {"query": "Ruby"}, "type": "server_tool_use"}},
    {"toolResult": {"toolUseId": "s", "content": [{"text": "[HIDDEN]"}], "type": "nova_grounding_result"}},
]
CALL: dict[str, Any] = {"toolUse": {"toolUseId": "c", "name": "look", "input": {"a": 1}}}
THOUGHT: dict[str, Any] = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
GROUNDING = {"systemTool": {"name": "nova_grounding"}}


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


def test_answer__trace_tier_and_the_models_fields__by_the_vendors_names() -> None:
    fields: dict[str, Any] = {
        "trace": TRACE,
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": {"type": "flex"},
        "additionalModelResponseFields": {"stop_sequence": None},
    }
    assert answered({"text": "x"}, **fields)["provider_specific_fields"] == fields
    assert "provider_specific_fields" not in answered({"text": "x"}, trace={}, serviceTier=None)


def test_answer__unknown_reason__kept_beside_the_ordinary_one() -> None:
    assert answered({"text": "x"}, stop="of_tomorrow")["provider_specific_fields"] == {"stopReason": "of_tomorrow"}
    frames = event("contentBlockDelta", contentBlockIndex=0, delta={"text": "x"})
    stream = ADAPTER.stream(bedrock_request(stream=True))
    stream.feed(event("messageStart", role="assistant") + frames + event("messageStop", stopReason="of_tomorrow"))
    end, last = [json.loads(item.data)["choices"][0] for item in stream.closing()]
    assert end["delta"] == {"provider_specific_fields": {"stopReason": "of_tomorrow"}}
    assert last["finish_reason"] == "stop"


def test_stream__trace_behind_a_broken_answer__nothing_before_the_failure() -> None:
    """A chunk with output before the failure would keep the gateway from trying another provider."""
    stream = ADAPTER.stream(bedrock_request(stream=True))
    end = event("messageStop", stopReason="malformed_tool_use") + event("metadata", usage=USAGE, trace=TRACE)
    assert not any(item.has_output for item in stream.feed(event("messageStart", role="assistant") + end))


def test_answer__without_own_blocks__no_content_twice() -> None:
    assert "provider_specific_fields" not in answered(THOUGHT, {"text": "x"}, CALL)


def test_answer__cited_documents__the_blocks_in_order() -> None:
    message = answered({"text": "Yes. "}, CITED, {"text": ""}, {"text": "So."})
    assert message["content"] == "Yes. It is. So."
    assert message["provider_specific_fields"] == {"content": [{"text": "Yes. "}, CITED, {"text": "So."}]}


def test_history__cited_text_and_calls__as_they_were() -> None:
    blocks = [THOUGHT, {"text": "Yes. "}, CITED, {"text": "So."}, CALL]
    assert sent_back(answered(*blocks, stop="tool_use"), tools=[TOOL]) == blocks


def test_history__thoughts_between_own_blocks__where_they_were() -> None:
    later = {"reasoningContent": {"reasoningText": {"text": "Hm?", "signature": "c2ln"}}}
    blocks: list[dict[str, Any]] = [
        THOUGHT,
        CITED,
        later,
        {"text": "So."},
        CALL,
        {"toolUse": {**CALL["toolUse"], "toolUseId": "d"}},
    ]
    assert sent_back(answered(*blocks, stop="tool_use"), tools=[TOOL]) == blocks


def test_history__search_of_the_vendors__back_while_its_tool_is_offered() -> None:
    message = answered(*SEARCHED, {"text": "Ruby 4."}, {"citationsContent": {"citations": [PAGE]}}, model=NOVA_2)
    offers: list[dict[str, Any]] = [{"web_search_options": {}}, {"tools": [GROUNDING]}]
    for fields in offers:
        assert sent_back(message, NOVA_2, **fields) == [*SEARCHED, {"text": "Ruby 4."}]
    assert sent_back(message, NOVA_2) == [{"text": "Ruby 4."}]


def test_history__model_without_such_blocks__their_text() -> None:
    assert sent_back(answered({"text": "Yes. "}, CITED), LLAMA) == [{"text": "Yes. "}, {"text": "It is. "}]


@pytest.mark.parametrize(
    "content",
    [
        "text",
        [7],
        # The block is Anthropic's own.
        [{"type": "text", "text": "Yes. It is. "}, {"type": "server_tool_use", "id": "x"}],
        [{"text": "Another. "}, CITED],
        [{"text": "Yes. "}, CITED, CALL],
        [{"text": "Yes. "}, CITED, THOUGHT],
        [{"text": "Yes. It is. "}, {"toolUse": "x"}],
        [{"text": "Yes. It is. "}, {"citationsContent": [1]}],
        [],
        {"a": 1},
    ],
)
def test_history__content_of_others_or_not_the_messages__the_message_counts(content: Any) -> None:
    message = deepcopy(answered({"text": "Yes. "}, CITED))
    message["provider_specific_fields"] = {"content": content}
    assert sent_back(message) == [{"text": "Yes. It is. "}]


@pytest.mark.parametrize("fields", ["x", 7, [], [{"content": []}], {"content": None}, {"trace": TRACE}])
def test_history__fields_of_any_form__no_matter(fields: Any) -> None:
    message = {"role": "assistant", "content": "Yes.", "provider_specific_fields": fields}
    for model in (CLAUDE, NOVA, LLAMA):
        assert sent_back(message, model) == [{"text": "Yes."}]


@pytest.mark.parametrize(
    "part",
    [
        {"citationsContent": {"content": [{"text": 7}, "x", {"text": "Yes."}], "citations": "x"}},
        {"citationsContent": {"content": [{"text": "Yes."}], "citations": [7]}},
        {"text": "Yes.", "toolUse": "x"},
        {"citationsContent": {"content": {"text": "Yes."}}},
    ],
)
def test_history__blocks_of_an_odd_form__the_messages_text(part: dict[str, Any]) -> None:
    use = {"toolUse": {"type": "server_tool_use", "toolUseId": ["x"], "name": {}}}
    fields = {"content": [part, use, {"toolResult": {"toolUseId": {}}}, {"reasoningContent": {"reasoningText": [1]}}]}
    message = {"role": "assistant", "content": "Yes.", "provider_specific_fields": fields}
    assert sent_back(message) == [{"text": "Yes."}]
