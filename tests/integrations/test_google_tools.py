"""Tests tools and their choice in requests for Gemini."""

from __future__ import annotations

from typing import Any

from tests.integrations.google_requests import (
    body_of,
)


class TestTools:
    def test_function__of_endless_depth__passed_on(self) -> None:
        schema: dict[str, Any] = {"type": "object"}
        for _ in range(300):
            schema = {"type": "object", "properties": {"a": schema}}
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        assert body_of(tools=[tool])["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == schema
