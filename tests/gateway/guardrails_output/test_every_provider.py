"""Masking works alike for every provider's dialect, whole and streamed, read by the official SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.story import Call, Story
from tests.gateway.service import GatewayService
from tests.gateway.stage import Stage, model_of, staged

PROVIDERS = [provider for provider in distinct_providers() if provider in FAKES]
ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Whom do I write to?"}]
MAIL, CARD = "ada@example.org", "4242 4242 4242 4242"
TOOL: Any = {"type": "function", "function": {"name": "send", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def stage(service: GatewayService) -> Iterator[Stage]:
    with staged(service) as made:
        service.set_routing(
            made.gateway.project_id,
            guardrails={"trust_mode": "enforce", "mask_output_pii": True, "blocked_output_topics": ["atom bomb"]},
        )
        yield made


@pytest.fixture(scope="module")
def client(stage: Stage) -> Iterator[openai.OpenAI]:
    with stage.gateway.openai() as made:
        yield made


def story_of(provider: str) -> Story:
    can = FAKES[provider].can
    calls = (Call("callAAA01", "send", {"to": MAIL, "card": CARD}),) if can.tools else ()
    return Story(
        text=f"Write to {MAIL}, and pay with {CARD}.",
        reasoning=f"The user means {MAIL}." if can.reasoning else "",
        signature="RXVyZWthISBzaWduZWQgYnkgdGhlIHZlbmRvcg==" if can.reasoning and can.signatures else "",
        calls=calls,
        finish="tool_calls" if calls else "stop",
        pieces=23,
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_masks_texts_calls_and_reasoning(stage: Stage, client: openai.OpenAI, provider: str) -> None:
    story = story_of(provider)
    stage.play(provider, story)
    options: dict[str, Any] = {"tools": [TOOL]} if story.calls else {}
    whole = client.chat.completions.create(model=model_of(provider), messages=ASK, **options)
    with client.chat.completions.stream(model=model_of(provider), messages=ASK, **options) as events:
        streamed = events.get_final_completion()
    for answer in (whole, streamed):
        serialized = answer.model_dump_json()
        assert "example.org" not in serialized
        assert "4242" not in serialized
        message = answer.choices[0].message
        assert message.content == "Write to [EMAIL], and pay with [CARD]."
        for call in message.tool_calls or []:
            assert json.loads(call.function.arguments) == {"to": "[EMAIL]", "card": "[CARD]"}
        assert len(message.tool_calls or []) == len(story.calls)
        if story.reasoning:
            assert message.model_dump()["reasoning_content"] == "The user means [EMAIL]."
        assert answer.usage is not None
        assert answer.choices[0].finish_reason == story.finish


@pytest.mark.parametrize("provider", PROVIDERS)
def test_refuses_topics(stage: Stage, client: openai.OpenAI, provider: str) -> None:
    stage.play(provider, Story(text="Atom bomb, they said", pieces=9))
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as raised:
            client.chat.completions.create(model=model_of(provider), messages=ASK, stream=stream)
        assert raised.value.code == "blocked_topic"
