"""The signals in the record of an answer, whatever the protocol: cut off, empty, from another model."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.providers.usage import Usage
from tests.fakes.dialects.story import Call, Story
from tests.fakes.scripted import status
from tests.gateway.conftest import Routed
from tests.gateway.managed import make_prompt
from tests.gateway.surfaces.ways import EVERY_WAY, WHOLE_AND_STREAMED, Way, answering

MANAGED = {"prompt_config": "support"}
THOUGHT = Usage(prompt_tokens=21, completion_tokens=900, reasoning_tokens=900)
FALLBACK = {"fallback_enabled": True, "fallback_order": ["deepseek"], "retry_enabled": False}


@EVERY_WAY
@WHOLE_AND_STREAMED
@pytest.mark.parametrize(
    ("story", "empty"),
    [
        ({"text": "Hello"}, False),
        ({"text": ""}, True),
        ({"text": "", "reasoning": 'It says "content":"x" and "text":"y"', "usage": THOUGHT}, True),
        ({"text": "Hello", "reasoning": "Hm"}, False),
        ({"calls": (Call("c1", "look", {"at": "it"}),), "finish": "tool_calls"}, False),
    ],
    ids=["text", "nothing", "reasoning", "reasoning-and-text", "call"],
)
def test_empty__neither_text_nor_call__whatever_it_cost(
    routed: Routed, way: Way, stream: bool, story: dict[str, Any], empty: bool
) -> None:
    if story.get("calls") and not way.can_call:
        story, empty = {"text": "Hello"}, False
    gateway, _ = routed(**{way.provider: [way.answer(**story)]})
    make_prompt(gateway, "Help.")

    record = gateway.record(way.ask(gateway, way.body(stream=stream, **MANAGED)))

    assert (record.outcome, record.empty_answer, record.is_native) == ("success", empty, way.is_native)


@EVERY_WAY
@WHOLE_AND_STREAMED
def test_cut_off__at_the_limit_of_its_length__is_length(routed: Routed, way: Way, stream: bool) -> None:
    gateway, _ = routed(**{way.provider: [way.answer(text="Hel", finish="length")]})
    record = gateway.record(way.ask(gateway, way.body(stream=stream)))
    assert (record.finish_reason, record.empty_answer) == ("length", False)


@EVERY_WAY
def test_other__provider_fails__is_noted(routed: Routed, way: Way) -> None:
    steps = {way.provider: [status(503)], "deepseek": [answering("deepseek", Story(text="Saved"))]}
    gateway, _ = routed(FALLBACK, **steps)
    record = gateway.record(way.ask(gateway))
    assert (record.fallback_used, record.other_used) == (True, True)
