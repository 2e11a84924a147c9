"""Tests thinking in requests for Gemini, by generation of the model."""

from __future__ import annotations

import pytest

from tests.integrations.google_requests import (
    FLASH,
    config_of,
)


class TestThinking:
    @pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh", "max"])
    @pytest.mark.parametrize("limit", [400, 1000, 3000, 20000])
    @pytest.mark.parametrize("model", [FLASH, "gemini-2.5-pro"])
    def test_effort__beside_a_limit__leaves_room_for_the_answer(self, model: str, effort: str, limit: int) -> None:
        config = config_of(model, reasoning_effort=effort, max_tokens=limit)
        assert config["maxOutputTokens"] == limit
        assert 0 < config["thinkingConfig"]["thinkingBudget"] <= limit * 3 // 4
