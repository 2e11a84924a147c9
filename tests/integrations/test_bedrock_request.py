"""Tests requests to Converse: model ids, parameters, formats of the answer, fields in Converse's own form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.bedrock.models import model_of
from integrations.providers.bedrock.request import build_body
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.bedrock_exchanges import CLAUDE, NOVA, bedrock_request
from tests.integrations.bedrock_requests import (
    CLAUDE_3,
    GPT_OSS,
    OPUS_4_6,
    OWN_PROFILE,
    SONNET_5,
    checked,
    native,
    warned,
)


@pytest.mark.parametrize(
    ("model", "vendor", "version"),
    [
        (CLAUDE, "anthropic", (4, 5)),
        (CLAUDE_3, "anthropic", (3, 0)),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic", (3, 5)),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "anthropic", (3, 7)),
        ("anthropic.claude-sonnet-4-20250514-v1:0", "anthropic", (4, 0)),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "anthropic", (4, 1)),
        (OPUS_4_6, "anthropic", (4, 6)),
        (SONNET_5, "anthropic", (5, 0)),
        ("anthropic.claude-fable-5-1", "anthropic", (5, 1)),
        ("anthropic.claude-v2:1", "anthropic", (0, 0)),
        ("anthropic.claude-instant-v1", "anthropic", (0, 0)),
        (f"arn:aws:bedrock:us-east-1:1:inference-profile/{CLAUDE}", "anthropic", (4, 5)),
        ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", "amazon", (0, 0)),
        (OWN_PROFILE, "", (0, 0)),
        (GPT_OSS, "openai", (0, 0)),
        ("us.moonshotai.kimi-k3", "moonshotai", (0, 0)),
        ("moonshot.kimi-k2-thinking", "moonshot", (0, 0)),
    ],
)
def test_model_of__id_profile_or_arn__vendor_and_version(model: str, vendor: str, version: tuple[int, int]) -> None:
    assert (model_of(model).vendor, model_of(model).version) == (vendor, version)


def test_response_format__json_object_with_a_schema__named() -> None:
    response_format = {"type": "json_object", "json_schema": {"type": "object"}}
    assert [warning.split(":")[0] for warning in warned(response_format=response_format)] == [
        "response_format",
        "response_format.json_schema",
    ]


def test_response_format__schema__native_and_closed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}}
    response_format = {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema, "description": "What to say"},
    }
    form = native(response_format=response_format)["outputConfig"]["textFormat"]
    described = form["structure"]["jsonSchema"]
    assert (form["type"], described["name"], described["description"]) == ("json_schema", "reply", "What to say")
    sent = json.loads(described["schema"])
    assert sent["additionalProperties"] is False
    assert sent["properties"]["a"]["items"]["additionalProperties"] is False
    assert "additionalProperties" not in schema


def test_response_format__json_object__an_instruction_and_named() -> None:
    body, warnings = checked(bedrock_request(response_format={"type": "json_object"}))
    assert "JSON" in body["system"][-1]["text"]
    assert [warning.split(":")[0] for warning in warnings] == ["response_format"]


def test_native_fields__under_their_own_names__passed_on() -> None:
    fields: dict[str, Any] = {
        "guardrailConfig": {"guardrailIdentifier": "abc", "guardrailVersion": "1"},
        "performanceConfig": {"latency": "optimized"},
        "requestMetadata": {"team": "blue"},
        "promptVariables": {"name": {"text": "x"}},
        "additionalModelResponseFieldPaths": ["/stop_sequence"],
        "serviceTier": {"type": "flex"},
    }
    more: dict[str, Any] = {
        "inferenceConfig": {"topP": 0.5},
        "outputConfig": {"effort": "low"},
        "additionalModelRequestFields": {"thinking": {"type": "disabled"}, "x": 1},
        "anthropic_beta": ["context-1m-2025-08-07"],
        "top_k": 5,
    }
    body, warnings = checked(bedrock_request(CLAUDE, max_tokens=9, **fields, **more))
    assert {name: body[name] for name in fields} == fields
    assert body["inferenceConfig"] == {"maxTokens": 9, "topP": 0.5}
    assert body["outputConfig"] == {"effort": "low"}
    own = {"anthropic_beta": ["context-1m-2025-08-07"], "top_k": 5, "x": 1, "thinking": {"type": "disabled"}}
    assert body["additionalModelRequestFields"] == own
    assert not warnings
    assert native(NOVA, top_k=5)["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 5}}
    assert native(service_tier="priority")["serviceTier"] == {"type": "priority"}
    assert not warned(service_tier="auto")


@pytest.mark.parametrize(
    "fields",
    [{"n": 2}, {"modalities": ["text", "audio"]}, {"audio": {"voice": "x"}}],
)
def test_parameters__of_another_kind_of_answer__refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build_body(bedrock_request(**fields))
    assert caught.value.parameter in (*fields, "modalities")


def test_parameters__without_counterpart__each_named() -> None:
    fields: dict[str, Any] = {
        "user": "u",
        "metadata": {"a": "b"},
        "store": True,
        "seed": 7,
        "logprobs": True,
        "frequency_penalty": 1,
    }
    assert [warning.split(":")[0] for warning in warned(**fields)] == list(fields)


def test_stop__empty__left_out() -> None:
    assert "inferenceConfig" not in native(NOVA, stop="")
