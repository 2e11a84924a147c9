"""Tests thinking, reasoning in histories, and sampling in requests to Converse."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.request import build_body
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.bedrock_exchanges import CLAUDE, KEYS, NOVA, bedrock_request
from tests.integrations.bedrock_requests import (
    CALL,
    CALLED,
    CLAUDE_3,
    GPT_OSS,
    LLAMA,
    NOVA_2,
    OPUS_4_6,
    OWN_PROFILE,
    RESULT,
    SONNET_5,
    TOOL,
    USER,
    checked,
    contents,
    native,
    warned,
)

SUMMARIZED = {"type": "adaptive", "display": "summarized"}


def enabled(budget: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": budget}


def signed(signature: str = "c2ln", form: str = "anthropic-claude-v1") -> list[dict[str, Any]]:
    return [
        {"type": "reasoning.text", "text": "Hm.", "signature": signature, "format": form},
        {"type": "reasoning.encrypted", "data": "RXRr+/==", "format": form},
    ]


def test_reasoning__signed_history__unmodified_and_in_order() -> None:
    message = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm.", "reasoning_details": signed()}
    assert contents(USER, message, USER)[1][1] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": b"RXRr+/=="}},
        {"text": "Yes."},
    ]
    body = json.loads(ADAPTER.build_request(bedrock_request(messages=[USER, message, USER]), KEYS).body)
    redacted = body["messages"][1]["content"][1]["reasoningContent"]["redactedContent"]
    assert base64.b64decode(redacted) == b"RXRr+/=="


def test_reasoning__unsigned_of_this_dialect__back_to_others_than_claude() -> None:
    detail = {"type": "reasoning.text", "text": "Hm.", "format": "amazon-bedrock-v1"}
    message = {"role": "assistant", "content": "Yes.", "reasoning_details": [detail]}
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm."}}}
    assert contents(USER, message, USER, model=NOVA)[1][1] == [thought, {"text": "Yes."}]
    assert contents(USER, message, USER)[1][1] == [{"text": "Yes."}]


@pytest.mark.parametrize("model", [CLAUDE, NOVA, OWN_PROFILE])
@pytest.mark.parametrize("form", ["google-gemini-v1", "openai-responses-v1", "amazon-bedrock-v1", ""])
def test_reasoning__of_another_vendor_or_unsigned__left_out(model: str, form: str) -> None:
    if model == NOVA and form == "amazon-bedrock-v1":
        form = "anthropic-claude-v1"
    for more in ({"reasoning_details": signed(form=form)}, {"reasoning_content": "Hm."}):
        message = {"role": "assistant", "content": "Yes.", **more}
        assert contents(USER, message, USER, model=model)[1][1] == [{"text": "Yes."}]


@pytest.mark.parametrize(
    ("model", "fields", "expected"),
    [
        (CLAUDE, {"reasoning_effort": "low"}, {"thinking": enabled(4096)}),
        (CLAUDE, {"thinking": enabled(2000)}, {"thinking": enabled(2000)}),
        (CLAUDE, {"thinking": enabled(7)}, {"thinking": enabled(1024)}),
        (CLAUDE, {"thinking": {"type": "adaptive"}}, {"thinking": enabled(8192)}),
        (CLAUDE, {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        (CLAUDE, {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        (CLAUDE_3, {"thinking": {"type": "disabled"}}, {}),
        (OPUS_4_6, {"thinking": enabled(2000)}, {"thinking": enabled(2000)}),
        (SONNET_5, {"thinking": SUMMARIZED}, {"thinking": SUMMARIZED}),
        (NOVA_2, {"reasoning_effort": "high"}, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        (NOVA_2, {"reasoning_effort": "none"}, {"reasoningConfig": {"type": "disabled"}}),
        (NOVA_2, {"reasoning_effort": "max"}, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        (NOVA_2, {"thinking": {"type": "between_tools"}}, {"reasoningConfig": {"type": "disabled"}}),
        (GPT_OSS, {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}),
        (GPT_OSS, {"reasoning_effort": "max"}, {"reasoning_effort": "high"}),
        ("us.openai.gpt-5.5", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "xhigh"}),
        ("us.openai.gpt-5.5", {"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
        ("deepseek.v3-v1:0", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}),
        ("deepseek.v3-v1:0", {"reasoning_effort": "none"}, {}),
        ("zai.glm-5", {"reasoning_effort": "medium"}, {"reasoning_config": "medium"}),
        ("qwen.qwen3-235b-a22b-2507-v1:0", {"reasoning_effort": "medium"}, {"reasoning_config": "high"}),
        (OWN_PROFILE, {"thinking": enabled(7)}, {"thinking": enabled(7)}),
        (CLAUDE, {"reasoning_effort": "max"}, {"thinking": enabled(65536)}),
        (CLAUDE, {"thinking": {"type": "between_tools"}}, {"thinking": {"type": "disabled"}}),
        (CLAUDE, {"thinking": {"type": "of_tomorrow", "x": 1}}, {"thinking": {"type": "of_tomorrow", "x": 1}}),
        (CLAUDE, {"thinking": enabled(2000), "max_tokens": 2001}, {"thinking": enabled(2000)}),
        (CLAUDE, {"reasoning_effort": "low", "max_tokens": 5120}, {"thinking": enabled(4096)}),
    ],
)
def test_thinking__each_model__in_its_own_words(model: str, fields: dict[str, Any], expected: dict[str, Any]) -> None:
    body, warnings = checked(bedrock_request(model, **fields))
    assert body.get("additionalModelRequestFields", {}) == expected
    assert not warnings


@pytest.mark.parametrize(
    ("model", "fields", "effort"),
    [
        (OPUS_4_6, {"reasoning_effort": "medium"}, "medium"),
        (OPUS_4_6, {"reasoning_effort": "xhigh"}, "max"),
        (SONNET_5, {"reasoning_effort": "minimal"}, "low"),
        (SONNET_5, {"reasoning_effort": "xhigh"}, "xhigh"),
        (SONNET_5, {"reasoning_effort": "max"}, "max"),
        (OPUS_4_6, {"reasoning_effort": "max"}, "max"),
        (SONNET_5, {"thinking": enabled(20000)}, "high"),
    ],
)
def test_thinking__adaptive_claude__effort_instead_of_a_budget(model: str, fields: dict[str, Any], effort: str) -> None:
    body = native(model, **fields)
    assert body["additionalModelRequestFields"]["thinking"]["type"] == "adaptive"
    shown = body["additionalModelRequestFields"]["thinking"].get("display", "")
    assert shown == ("summarized" if model == SONNET_5 else "")
    assert body["outputConfig"] == {"effort": effort}


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (LLAMA, {"reasoning_effort": "high"}),
        (CLAUDE_3, {"thinking": enabled(2000)}),
        (CLAUDE, {"reasoning_effort": "high", "max_tokens": 500}),
        (CLAUDE, {"reasoning_effort": "high", "tools": [TOOL], "tool_choice": "required"}),
        (CLAUDE, {"reasoning_effort": "high", "tools": [TOOL], "messages": [USER, CALLED, RESULT]}),
        (OWN_PROFILE, {"reasoning_effort": "high"}),
        ("us.anthropic.claude-fable-5", {"reasoning_effort": "none"}),
        ("us.anthropic.claude-mythos-preview", {"thinking": {"type": "disabled"}}),
        ("us.anthropic.claude-opus-5-5", {"reasoning_effort": "none"}),
        ("us.deepseek.r1-v1:0", {"reasoning_effort": "high"}),
        ("qwen.qwen3-coder-30b-a3b-v1:0", {"reasoning_effort": "high"}),
        ("moonshot.kimi-k2-thinking", {"thinking": enabled(2000)}),
        (CLAUDE, {"reasoning_effort": "low", "max_tokens": 1200}),
    ],
)
def test_thinking__impossible_here__left_out_and_named(model: str, fields: dict[str, Any]) -> None:
    body, warnings = checked(bedrock_request(model, **fields))
    assert "additionalModelRequestFields" not in body
    assert len(warnings) == 1


@pytest.mark.parametrize("model", [GPT_OSS, "zai.glm-5", "qwen.qwen3-32b-v1:0"])
def test_thinking__off_at_a_model_that_always_thinks__its_lowest_level_and_named(model: str) -> None:
    body, warnings = checked(bedrock_request(model, reasoning_effort="none"))
    assert set(body["additionalModelRequestFields"].values()) == {"low"}
    assert "always thinks" in warnings[0]


@pytest.mark.parametrize("model", [NOVA_2, GPT_OSS])
def test_thinking__counts_and_display_at_a_model_of_levels__the_nearest_and_named(model: str) -> None:
    body, warnings = checked(bedrock_request(model, thinking={**enabled(9000), "display": "omitted"}))
    assert '"medium"' in json.dumps(body["additionalModelRequestFields"])
    assert [warning.split(":")[0] for warning in warnings] == ["thinking.budget_tokens", "thinking.display"]


@pytest.mark.parametrize("model", [NOVA_2, GPT_OSS, LLAMA])
def test_thinking__type_of_tomorrow_at_another_than_claude__refused_by_name(model: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build_body(bedrock_request(model, thinking={"type": "of_tomorrow"}))
    assert caught.value.parameter == "thinking"


@pytest.mark.parametrize(
    "fields",
    [{"reasoning_effort": "high", "max_tokens": 3000}, {"thinking": enabled(9000), "max_completion_tokens": 3000}],
)
def test_thinking__budget_beyond_the_limit__leaves_a_fifth_for_the_answer(fields: dict[str, Any]) -> None:
    body, warnings = checked(bedrock_request(**fields))
    assert body["additionalModelRequestFields"] == {"thinking": enabled(2400)}
    assert "lowered to 2400" in warnings[0]


def test_thinking__off_at_a_model_that_thinks_between_tools__its_own_word() -> None:
    body = native("us.anthropic.claude-sonnet-5-5", reasoning_effort="none")
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "between_tools"}}


def test_thinking__beside_limits_and_sampling__within_what_the_models_allow() -> None:
    fields: dict[str, Any] = {"reasoning_effort": "medium", "max_tokens": 5000, "temperature": 0.2, "top_p": 0.97}
    body, warnings = checked(bedrock_request(CLAUDE, **fields))
    assert body["additionalModelRequestFields"]["thinking"]["budget_tokens"] == 4000
    assert body["inferenceConfig"] == {"maxTokens": 5000, "topP": 0.97}
    assert len(warnings) == 2
    nova, warnings = checked(bedrock_request(NOVA_2, reasoning_effort="high", max_tokens=500))
    assert nova["additionalModelRequestFields"]["reasoningConfig"]["maxReasoningEffort"] == "medium"
    assert len(warnings) == 1
    history = {"role": "assistant", "reasoning_details": signed(), "tool_calls": [CALL]}
    continued = native(reasoning_effort="low", tools=[TOOL], messages=[USER, history, RESULT])
    assert continued["additionalModelRequestFields"]["thinking"]["type"] == "enabled"


def test_sampling__what_a_claude_refuses__left_out_and_named() -> None:
    thinks: dict[str, Any] = {"reasoning_effort": "low", "top_p": 0.5, "top_k": 5}
    assert "inferenceConfig" not in native(**thinks)
    assert len(warned(**thinks)) == 2
    both: dict[str, Any] = {"temperature": 0.2, "top_p": 0.5}
    assert native(**both)["inferenceConfig"] == {"temperature": 0.2}
    assert len(warned(**both)) == 1
    assert "inferenceConfig" not in native(SONNET_5, **both)
    assert len(warned(SONNET_5, **both)) == 2
    assert native(NOVA, **both)["inferenceConfig"] == {"temperature": 0.2, "topP": 0.5}
    assert native(NOVA, temperature=1.7)["inferenceConfig"] == {"temperature": 1}
    assert len(warned(NOVA, temperature=1.7)) == 1
    assert native(stop=["\n", "END"])["inferenceConfig"] == {"stopSequences": ["END"]}
    assert native(LLAMA, stop="\n")["inferenceConfig"] == {"stopSequences": ["\n"]}
