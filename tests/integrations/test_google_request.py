"""Tests requests for Gemini: parameters, fields in Google's own form, the format of the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.google import GEMINI
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.google_requests import (
    FLASH,
    THIRD,
    TOOL,
    USER,
    body_of,
    built,
    calling,
    config_of,
    parts_of,
)

NAMED: dict[str, Any] = {"name": "a", "schema": {"type": "object"}}


def test_messages__nothing_between_two_of_the_users__one_turn() -> None:
    called = [calling(("c", "f")), {"role": "tool", "tool_call_id": "c", "content": "ok"}]
    silent = {"role": "assistant", "content": "", "reasoning_content": "hm"}
    parts = parts_of({"role": "user", "content": "a"}, *called, silent, {"role": "user", "content": "b"})
    assert [role for role, _ in parts] == ["user", "model", "user"]
    assert parts[-1][1][-1] == {"text": "b"}


def test_parameters__all_that_google_has__under_its_names() -> None:
    built_now = built(
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        n=2,
        seed=7,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        max_completion_tokens=100,
        max_tokens=50,
        stop="END",
        logprobs=True,
        top_logprobs=3,
    )
    assert json.loads(built_now.body)["generationConfig"] == {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 40,
        "candidateCount": 2,
        "seed": 7,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "responseLogprobs": True,
        "logprobs": 3,
    }
    assert built_now.warnings == ()


def test_parameters__none_given__no_config() -> None:
    assert body_of() == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


@pytest.mark.parametrize("name", ["user", "metadata", "store", "logit_bias", "verbosity", "prompt_cache_key"])
def test_parameters__without_counterpart__dropped_and_named(name: str) -> None:
    fields: dict[str, Any] = {name: {"a": 1} if name in ("metadata", "logit_bias") else "x"}
    request = built(**fields)
    assert [warning.partition(":")[0] for warning in request.warnings] == [name]
    assert json.loads(request.body) == body_of()


def test_stop__more_than_google_takes__refused() -> None:
    with pytest.raises(UnsupportedParameterError, match="at most 5"):
        built(stop=list("abcdef"))


def test_seed__of_64_bits__folded_and_stable() -> None:
    folded = config_of(seed=2**40 + 5)["seed"]
    assert 0 <= folded < 2**31
    assert folded == config_of(seed=2**40 + 5)["seed"]


@pytest.mark.parametrize(
    "parameters", [{"modalities": ["text", "audio"]}, {"generationConfig": {"response_modalities": ["AUDIO"]}}]
)
def test_modalities__audio__refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError, match="modalities"):
        built(**parameters)


def test_modalities__image__requested() -> None:
    assert config_of(modalities=["text", "image"])["responseModalities"] == ["TEXT", "IMAGE"]


@pytest.mark.parametrize(
    ("tier", "sent"), [("flex", "flex"), ("priority", "priority"), ("auto", None), ("scale", None)]
)
def test_service_tier__where_google_has_it__sent(tier: str, sent: str | None) -> None:
    request = built(service_tier=tier)
    assert json.loads(request.body).get("serviceTier") == sent
    assert bool(request.warnings) is (tier == "scale")


class TestNative:
    def test_generation_config__either_spelling__passes_and_wins(self) -> None:
        config = config_of(
            temperature=0.1, generation_config={"temperature": 0.9, "media_resolution": "MEDIA_RESOLUTION_LOW"}
        )
        assert config == {"temperature": 0.9, "mediaResolution": "MEDIA_RESOLUTION_LOW"}

    def test_config_key_at_the_top__either_spelling__passes(self) -> None:
        assert config_of(speechConfig={"a": 1}, image_config={"aspectRatio": "1:1"}) == {
            "speechConfig": {"a": 1},
            "imageConfig": {"aspectRatio": "1:1"},
        }

    def test_body_fields__either_spelling__pass(self) -> None:
        setting = {"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}
        request = built(safety_settings=[setting], cachedContent="cachedContents/x", labels={"team": "a"})
        body = json.loads(request.body)
        assert (body["safetySettings"], body["cachedContent"], body["labels"]) == (
            [setting],
            "cachedContents/x",
            {"team": "a"},
        )
        assert request.warnings == ()

    def test_thinking_config__native__replaces_the_translated(self) -> None:
        assert config_of(reasoning_effort="high", thinkingConfig={"thinkingBudget": 5}) == {
            "thinkingConfig": {"thinkingBudget": 5}
        }

    def test_extra_body__googles_own_way__unpacked(self) -> None:
        request = built(extra_body={"google": {"thinking_config": {"thinking_budget": 5}, "cached_content": "c"}})
        body = json.loads(request.body)
        assert body["generationConfig"] == {"thinkingConfig": {"thinking_budget": 5}}
        assert body["cachedContent"] == "c"
        assert request.warnings == ()

    def test_schema__native__replaces_the_translated(self) -> None:
        response_format = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
        config = config_of(response_format=response_format, generationConfig={"responseSchema": {"type": "STRING"}})
        assert config == {"responseMimeType": "application/json", "responseSchema": {"type": "STRING"}}


class TestFormat:
    def test_json_object__media_type_alone(self) -> None:
        assert config_of(response_format={"type": "json_object"}) == {"responseMimeType": "application/json"}

    @pytest.mark.parametrize("given", [{"type": "object"}, {"name": "a", "schema": {"type": "object"}}])
    def test_json_object__with_a_schema_beside__that_schema(self, given: dict[str, Any]) -> None:
        assert config_of(response_format={"type": "json_object", "json_schema": given}) == {
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        }

    def test_json_schema__whole_schema(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "additionalProperties": False}
        json_schema = {"name": "a", "schema": schema, "strict": True, "description": "An answer"}
        assert config_of(response_format={"type": "json_schema", "json_schema": json_schema}) == {
            "responseMimeType": "application/json",
            "responseJsonSchema": {"description": "An answer", **schema},
        }

    def test_text__nothing(self) -> None:
        assert config_of(response_format={"type": "text"}) == {}

    @pytest.mark.parametrize("wanted", [{"type": "json_object"}, {"type": "json_schema", "json_schema": NAMED}])
    def test_json__with_tools_before_the_third_generation__refused_where_another_may_answer(self, wanted: Any) -> None:
        fields = {"messages": [USER], "tools": [TOOL], "response_format": wanted}
        foreign = replace(chat_request(FLASH, **fields), crosses_vendor=True)
        with pytest.raises(UnsupportedParameterError, match="response_format"):
            GEMINI.build_request(foreign, credentials("google"))
        third = replace(chat_request(THIRD, **fields), crosses_vendor=True)
        assert GEMINI.build_request(third, credentials("google")).warnings == ()
        assert config_of(**fields)["responseMimeType"] == "application/json"
