"""Tests thinking and effort in requests to the Messages API, by generation of the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.anthropic.models import rules_of
from tests.integrations.anthropic_requests import (
    ADAPTIVE,
    BOTH,
    BUDGETS,
    OLD,
    PING,
    USER,
    body_of,
    upstream,
)


@pytest.mark.parametrize(
    ("model", "fields", "expected"),
    [
        (BUDGETS, {"thinking": {"type": "enabled", "budget_tokens": 2048}}, {"type": "enabled", "budget_tokens": 2048}),
        (BUDGETS, {"thinking": {"type": "enabled"}}, {"type": "enabled", "budget_tokens": 8192}),
        (BUDGETS, {"thinking": {"type": "adaptive"}}, {"type": "enabled", "budget_tokens": 8192}),
        (BUDGETS, {"reasoning_effort": "low"}, {"type": "enabled", "budget_tokens": 4096}),
        (BUDGETS, {"reasoning_effort": "none"}, None),
        (BUDGETS, {"thinking": {"type": "disabled"}}, {"type": "disabled"}),
        (OLD, {"thinking": {"type": "disabled"}}, None),
        (
            BUDGETS,
            {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}},
            {"type": "enabled", "budget_tokens": 2000, "display": "omitted"},
        ),
        (BOTH, {"thinking": {"type": "enabled", "budget_tokens": 2048}}, {"type": "enabled", "budget_tokens": 2048}),
        (BOTH, {"reasoning_effort": "high"}, {"type": "adaptive"}),
        (ADAPTIVE, {"reasoning_effort": "high"}, {"type": "adaptive", "display": "summarized"}),
        (ADAPTIVE, {"thinking": {"type": "adaptive"}}, {"type": "adaptive"}),
        (ADAPTIVE, {"reasoning_effort": "none"}, {"type": "disabled"}),
        ("claude-sonnet-5-5", {"reasoning_effort": "none"}, {"type": "between_tools"}),
        ("claude-unheard-of", {"reasoning_effort": "low"}, {"type": "adaptive"}),
        ("claude-unheard-of", {"thinking": {"type": "between_tools"}}, {"type": "between_tools"}),
        ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}, {"type": "between_tools"}),
        ("claude-sonnet-5-5", {"thinking": {"type": "disabled"}}, {"type": "between_tools"}),
        (ADAPTIVE, {"thinking": {"type": "between_tools"}}, {"type": "disabled"}),
        (BUDGETS, {"thinking": {"type": "between_tools"}}, {"type": "disabled"}),
        (ADAPTIVE, {"reasoning_effort": "max"}, {"type": "adaptive", "display": "summarized"}),
        (ADAPTIVE, {"thinking": {"type": "of_tomorrow", "depth": 3}}, {"type": "of_tomorrow", "depth": 3}),
        (BUDGETS, {"thinking": {"type": "of_tomorrow", "depth": 3}}, {"type": "of_tomorrow", "depth": 3}),
    ],
)
def test_thinking__as_the_model_takes_it(model: str, fields: dict[str, Any], expected: Any) -> None:
    request = upstream(model, **fields)
    assert json.loads(request.body).get("thinking") == expected
    assert not request.warnings


@pytest.mark.parametrize(
    ("model", "fields", "expected"),
    [
        (ADAPTIVE, {"reasoning_effort": "minimal"}, "low"),
        (ADAPTIVE, {"reasoning_effort": "xhigh"}, "xhigh"),
        (ADAPTIVE, {"reasoning_effort": "max"}, "max"),
        (BOTH, {"reasoning_effort": "max"}, "max"),
        ("claude-opus-4-5", {"reasoning_effort": "low"}, "low"),
        (ADAPTIVE, {"thinking": {"type": "of_tomorrow"}, "reasoning_effort": "max"}, "max"),
        (BOTH, {"reasoning_effort": "xhigh"}, "high"),
        (BOTH, {"thinking": {"type": "enabled", "budget_tokens": 2048}, "reasoning_effort": "low"}, "low"),
        (ADAPTIVE, {"thinking": {"type": "enabled", "budget_tokens": 4000}}, "low"),
        (ADAPTIVE, {"thinking": {"type": "enabled", "budget_tokens": 30000}}, "high"),
        (ADAPTIVE, {"reasoning_effort": "low", "output_config": {"effort": "max"}}, "max"),
        (ADAPTIVE, {"thinking": {"type": "enabled"}}, None),
        (BUDGETS, {"reasoning_effort": "high"}, None),
    ],
)
def test_effort__as_the_model_has_it(model: str, fields: dict[str, Any], expected: str | None) -> None:
    assert body_of(model, **fields).get("output_config", {}).get("effort") == expected


@pytest.mark.parametrize(
    ("model", "fields", "named"),
    [
        (OLD, {"reasoning_effort": "high"}, "reasoning_effort"),
        (OLD, {"thinking": {"type": "enabled", "budget_tokens": 2048}}, "thinking"),
        ("claude-opus-5-5", {"thinking": {"type": "disabled"}}, "thinking"),
        ("claude-fable-5", {"reasoning_effort": "none"}, "reasoning_effort"),
        (BUDGETS, {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 1024}, "thinking"),
        (BUDGETS, {"reasoning_effort": "high", "tools": [PING], "tool_choice": "required"}, "reasoning_effort"),
    ],
)
def test_thinking__impossible__left_out_and_named(model: str, fields: dict[str, Any], named: str) -> None:
    request = upstream(model, **fields)
    assert "thinking" not in json.loads(request.body)
    (warning,) = request.warnings
    assert warning.startswith(f"{named}: dropped, ")


def test_thinking__budget_for_a_model_that_decides_itself__named() -> None:
    request = upstream(ADAPTIVE, thinking={"type": "enabled", "budget_tokens": 2048})
    assert json.loads(request.body)["thinking"] == {"type": "adaptive", "display": "summarized"}
    (warning,) = request.warnings
    assert warning.startswith("thinking.budget_tokens: dropped")


@pytest.mark.parametrize(
    ("fields", "budget", "limit"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 100}}, 1024, 64000),
        ({"thinking": {"type": "enabled", "budget_tokens": 8000}, "max_tokens": 5000}, 3750, 5000),
        ({"thinking": {"type": "enabled", "budget_tokens": 4999}, "max_tokens": 5000}, 4999, 5000),
        ({"thinking": {"type": "enabled", "budget_tokens": 90000}}, 59904, 64000),
        ({"reasoning_effort": "high", "max_tokens": 2000}, 1500, 2000),
        ({"reasoning_effort": "high", "max_tokens": 3000}, 2250, 3000),
        ({"reasoning_effort": "low", "max_tokens": 30000}, 4096, 30000),
        ({"reasoning_effort": "max"}, 59904, 64000),
    ],
)
def test_thinking__budget_and_limit__the_one_below_the_other(fields: dict[str, Any], budget: int, limit: int) -> None:
    body = body_of(**fields)
    assert (body["thinking"]["budget_tokens"], body["max_tokens"]) == (budget, limit)


def test_thinking__settings_of_the_vendors__kept_and_others_named() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2048, "block_binding": {"mode": "strict"}, "token_budget": 9}
    for model in (BUDGETS, ADAPTIVE):
        request = upstream(model, thinking=thinking)
        assert json.loads(request.body)["thinking"]["block_binding"] == {"mode": "strict"}
        assert request.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"
        assert request.warnings[0] == "thinking.token_budget: dropped, anthropic has no counterpart"
    (warning,) = upstream(thinking={"type": "disabled", "display": "omitted"}).warnings
    assert warning.startswith("thinking: dropped, ")


def test_thinking__shown_in_updates__the_beta_feature_goes_along() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2048, "display": "updates"}
    assert upstream(thinking=thinking).headers["anthropic-beta"] == "thinking-display-updates-2026-08-18"
    assert "anthropic-beta" not in upstream(thinking={**thinking, "display": "omitted"}).headers


def test_thinking__less_of_it_than_the_effort_stands_for__named() -> None:
    (warning,) = upstream(reasoning_effort="high", max_tokens=3000).warnings
    assert warning == "reasoning_effort: 2250 tokens to think with, the limit on tokens leaves no more"
    assert not upstream(reasoning_effort="low", max_tokens=8000).warnings
    (warning,) = upstream(reasoning_effort="low", max_tokens=1300).warnings
    assert warning.startswith("reasoning_effort: dropped, max_tokens leaves no room")


def test_thinking__budget_for_a_model_of_unknown_limit__makes_room() -> None:
    body = body_of("my-own-claude", thinking={"type": "enabled", "budget_tokens": 90000})
    assert (body["thinking"]["budget_tokens"], body["max_tokens"]) == (90000, 94096)


def test_thinking__in_the_middle_of_a_loop_that_began_without__left_out() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    history: list[dict[str, Any]] = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "of another vendor"},
        {"role": "tool", "tool_call_id": "c", "content": "pong"},
    ]
    request = upstream(messages=history, tools=[PING], reasoning_effort="high")
    assert "thinking" not in json.loads(request.body)
    assert request.warnings == ("reasoning_effort: dropped, the tool call that is being answered came without it",)
    signed = {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1", "index": 0}
    history[1]["reasoning_details"] = [signed]
    assert "thinking" in body_of(messages=history, tools=[PING], reasoning_effort="high")
    # A model that decides itself about thinking needs no entry.
    del history[1]["reasoning_details"]
    assert "thinking" in body_of(ADAPTIVE, messages=history, tools=[PING], reasoning_effort="high")


@pytest.mark.parametrize(
    ("model", "thinking", "sampling", "schema"),
    [
        ("claude-3-opus-20240229", "none", True, False),
        ("claude-3-7-sonnet-latest", "manual", True, False),
        ("claude-4-sonnet-20250514", "manual", True, False),
        ("claude-opus-4-1-20250805", "manual", True, True),
        ("claude-opus-4-5@20251101", "manual", True, True),
        ("anthropic/claude-sonnet-4.6", "both", True, True),
        ("claude-opus-4-7", "adaptive", False, True),
        ("claude-haiku-5-5", "adaptive", False, True),
        ("claude-mythos-preview", "adaptive", False, True),
        ("my-own-claude", "both", True, True),
    ],
)
def test_rules__by_name__of_the_generation(model: str, thinking: str, sampling: bool, schema: bool) -> None:
    rules = rules_of(model)
    assert (rules.thinking, rules.sampling, rules.schema) == (thinking, sampling, schema)
