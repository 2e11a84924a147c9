"""Tests requests to Mistral: parameters, tools and thinking."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.mistral import ADAPTER
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.mistral_requests import SMALL, USER, built, called, result

PING = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}
PONG = {"type": "function", "function": {"name": "pong", "parameters": {"type": "object"}}}


def test_body__all_of_it_mistrals__the_same_bytes() -> None:
    request = chat_request(
        SMALL,
        messages=[
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]},
            called("aB3dE6gH9"),
            result("aB3dE6gH9"),
        ],
        tools=[PING],
        safe_prompt=True,
        random_seed=1,
        field_of_tomorrow={"x": 1.50},
    )
    assert ADAPTER.build_request(request, credentials("mistral")).body is request.body


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"modalities": ["text", "audio"], "audio": {"voice": "x"}}, "modalities"),
        ({"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "tools"),
        ({"tools": [PING], "tool_choice": {"type": "custom", "custom": {"name": "c"}}}, "tool_choice"),
        (
            {
                "tools": [PING],
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [PONG]}},
            },
            "tool_choice",
        ),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "x"}}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"filename": "x"}}]}]}, "messages"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"id": "1", "custom": {}}]}]}, "messages"),
    ],
    ids=str,
)
def test_field__another_kind_of_answer__refused(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        built(**fields)
    assert (caught.value.parameter, caught.value.provider) == (parameter, "mistral")


def test_thinking__in_mistrals_own_form__the_same_bytes() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}
    messages = [USER, {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}, USER]
    request = chat_request(SMALL, messages=messages)
    assert ADAPTER.build_request(request, credentials("mistral")).body is request.body
