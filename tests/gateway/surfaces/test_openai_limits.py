"""Translated requests that OpenAI would refuse: an answer in JSON that no text asks for, and too many tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.dialects.story import Story
from tests.gateway.stage import Stage, model_of
from tests.gateway.surfaces.gemini.clients import ASK

Json = dict[str, Any]

OPENAI, GROQ = model_of("openai"), model_of("groq")
IN_JSON: Json = {**ASK, "generationConfig": {"responseMimeType": "application/json"}}
SCHEMA: Json = {"type": "object", "properties": {}}


def with_tools(count: int, model: str) -> Json:
    tools = [{"name": f"tool_{number}", "input_schema": SCHEMA} for number in range(count)]
    return {"model": model, "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}], "tools": tools}


@pytest.mark.parametrize("model", [OPENAI, "openai/gpt-5.5", model_of("azure_openai"), GROQ])
def test_answer_in_json__asked_for_by_the_media_type_alone__is_asked_for_in_words_too(stage: Stage, model: str) -> None:
    provider = model.partition("/")[0]
    script = stage.play(provider, Story(text="{}"))
    url = f"/api/gateway/v1beta/models/{model}:generateContent"

    answer = stage.gateway.client.post(url, json=IN_JSON, headers=stage.gateway.headers)

    assert answer.status_code == 200, answer.text
    assert answer.json()["candidates"][0]["content"]["parts"] == [{"text": "{}"}]
    (request,) = stage.requests_of(provider)
    assert (request.system, request.turns) == ("Answer in JSON.", (("user", "Hello"),))
    assert json.loads(script.received[0].body)["response_format"] == {"type": "json_object"}


def test_tools__more_than_openai_takes__are_refused_with_their_number(stage: Stage) -> None:
    openai = stage.play("openai", Story(text="Hello"))

    def ask(count: int) -> Any:
        body = with_tools(count, OPENAI)
        return stage.gateway.client.post("/api/gateway/v1/messages", json=body, headers=stage.gateway.headers)

    refused, taken = ask(129), ask(128)

    assert refused.status_code == 400
    assert "tools: openai takes 128 tools, and these are 129" in refused.json()["error"]["message"]
    assert taken.status_code == 200, taken.text
    assert [len(json.loads(one.body)["tools"]) for one in openai.received] == [128]
