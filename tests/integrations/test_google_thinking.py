"""Tests thinking in requests for Gemini, by generation of the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.google_requests import (
    FLASH,
    THIRD,
    built,
    config_of,
)


class TestThinking:
    @pytest.mark.parametrize(
        ("model", "effort", "config"),
        [
            (FLASH, "low", {"includeThoughts": True, "thinkingBudget": 1024}),
            (FLASH, "high", {"includeThoughts": True, "thinkingBudget": 24576}),
            (FLASH, "minimal", {"includeThoughts": True, "thinkingBudget": 1024}),
            (FLASH, "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
            (FLASH, "xhigh", {"includeThoughts": True, "thinkingBudget": 24576}),
            (FLASH, "max", {"includeThoughts": True, "thinkingBudget": 24576}),
            ("gemini-2.5-pro", "max", {"includeThoughts": True, "thinkingBudget": 32768}),
            (THIRD, "xhigh", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
            (THIRD, "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
            ("gemini-3.6-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
            ("gemini-3.8-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
            ("gemini-4-argon", "none", {"thinkingLevel": "LOW"}),
            ("gemini-4-argon", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
            ("gemini-4-argon", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
            ("gemini-4-argon", "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
            (FLASH, "none", {"thinkingBudget": 0}),
            ("gemini-2.5-pro", "xhigh", {"includeThoughts": True, "thinkingBudget": 32768}),
            ("gemini-2.5-pro", "none", {"thinkingBudget": 128}),
            (THIRD, "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
            (THIRD, "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
            (THIRD, "none", {"thinkingLevel": "MINIMAL"}),
            ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
            ("gemini-3-pro-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
            ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
            ("gemini-3.1-pro-preview", "none", {"thinkingLevel": "LOW"}),
            ("gemini-pro-latest", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
            ("tunedModels/mine", "low", {"includeThoughts": True, "thinkingBudget": 1024}),
        ],
    )
    def test_effort__by_generation__budget_or_level(self, model: str, effort: str, config: dict[str, Any]) -> None:
        assert config_of(model, reasoning_effort=effort)["thinkingConfig"] == config

    @pytest.mark.parametrize(
        ("model", "thinking", "config"),
        [
            (FLASH, {"type": "enabled", "budget_tokens": 2000}, {"includeThoughts": True, "thinkingBudget": 2000}),
            (FLASH, {"type": "enabled", "budget_tokens": 99999}, {"includeThoughts": True, "thinkingBudget": 24576}),
            (
                "gemini-2.5-flash-lite",
                {"type": "enabled", "budget_tokens": 5},
                {"includeThoughts": True, "thinkingBudget": 512},
            ),
            (FLASH, {"type": "adaptive"}, {"includeThoughts": True, "thinkingBudget": -1}),
            (FLASH, {"type": "disabled"}, {"thinkingBudget": 0}),
            (THIRD, {"type": "enabled", "budget_tokens": 512}, {"includeThoughts": True, "thinkingBudget": 512}),
            (THIRD, {"type": "adaptive"}, {"includeThoughts": True}),
            (FLASH, {"type": "between_tools"}, {"thinkingBudget": 0}),
            (FLASH, {"type": "enabled", "token_budget": 2000}, {"includeThoughts": True, "thinkingBudget": 2000}),
            (FLASH, {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}, {"thinkingBudget": 2000}),
            (THIRD, {"type": "adaptive", "display": "summarized"}, {"includeThoughts": True}),
        ],
    )
    def test_thinking__by_generation__budget(
        self, model: str, thinking: dict[str, Any], config: dict[str, Any]
    ) -> None:
        assert config_of(model, thinking=thinking)["thinkingConfig"] == config

    @pytest.mark.parametrize(
        "model", ["gemini-2.0-flash", "gemini-1.5-pro", "gemma-3-27b-it", "gemini-2.5-flash-image"]
    )
    def test_effort__model_that_does_not_reason__dropped_and_named(self, model: str) -> None:
        request = built(model, reasoning_effort="high")
        assert "thinkingConfig" not in json.loads(request.body).get("generationConfig", {})
        assert "reasoning_effort" in request.warnings[0]

    @pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh", "max"])
    @pytest.mark.parametrize("limit", [400, 1000, 3000, 20000])
    @pytest.mark.parametrize("model", [FLASH, "gemini-2.5-pro"])
    def test_effort__beside_a_limit__leaves_room_for_the_answer(self, model: str, effort: str, limit: int) -> None:
        config = config_of(model, reasoning_effort=effort, max_tokens=limit)
        assert config["maxOutputTokens"] == limit
        assert 0 < config["thinkingConfig"]["thinkingBudget"] <= limit * 3 // 4

    @pytest.mark.parametrize(
        ("model", "limit", "sent", "named"),
        [("gemini-2.5-flash-lite", 500, 0, "thinking: dropped"), ("gemini-2.5-pro", 100, 128, "thinking: max_tokens")],
    )
    def test_effort__limit_below_the_least_budget__named(self, model: str, limit: int, sent: int, named: str) -> None:
        request = built(model, reasoning_effort="high", max_tokens=limit)
        assert json.loads(request.body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == sent
        assert request.warnings[0].startswith(named)

    @pytest.mark.parametrize("model", [FLASH, THIRD])
    def test_budget__of_the_client__kept_unless_the_limit_is_not_above_it(self, model: str) -> None:
        thinking = {"type": "enabled", "budget_tokens": 2999}
        request = built(model, thinking=thinking, max_tokens=3000)
        assert json.loads(request.body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2999
        assert request.warnings == ()
        request = built(model, thinking=thinking, max_tokens=2999)
        assert json.loads(request.body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2249
        assert request.warnings[0].startswith("thinking.budget_tokens: lowered")

    @pytest.mark.parametrize(
        ("parameters", "name"),
        [({"reasoning_effort": "ultra"}, "reasoning_effort"), ({"thinking": {"type": "tomorrow"}}, "thinking")],
    )
    @pytest.mark.parametrize("model", [FLASH, THIRD])
    def test_word_of_tomorrow__refused_by_name(self, model: str, parameters: dict[str, Any], name: str) -> None:
        with pytest.raises(UnsupportedParameterError) as caught:
            built(model, **parameters)
        assert caught.value.parameter == name

    def test_thinking__fields_without_counterpart__named(self) -> None:
        thinking = {"type": "enabled", "budget_tokens": 2000, "block_binding": "x"}
        assert built(thinking=thinking).warnings[0].startswith("thinking.block_binding")

    def test_effort__cannot_be_switched_off__named(self) -> None:
        assert "always reasons" in built("gemini-2.5-pro", reasoning_effort="none").warnings[0]
