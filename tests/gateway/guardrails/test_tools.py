"""Tools are found under every name that a request can give them."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.guardrails.tools import tools_of


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, {"f"}),
        ({"tools": [{"type": "", "function": {"name": "f"}}]}, {"f", ""}),
        ({"tools": [{"type": "custom", "function": {"name": "f"}, "custom": {"name": "g"}}]}, {"f", "g"}),
        ({"tools": [{"function": {"name": "f"}}, {"name": "g", "input_schema": {}}]}, {"f", "g"}),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, {"web_search", "web_search_20250305"}),
        ({"tools": [{"type": "function", "function": {"name": ["f"]}}, "f", None]}, set()),
        ({"web_search_options": {}}, {"web_search"}),
        ({"web_search_options": None}, set()),
        ({"functions": [{"name": "f"}], "function_call": {"name": "g"}}, {"f", "g"}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"f"}),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [{"type": "mcp"}]}}},
            {"allowed_tools", "mcp"},
        ),
    ],
)
def test_tools__of_a_request__are_found(fields: dict[str, Any], names: set[str]) -> None:
    assert set(tools_of({"messages": [], **fields})) == names
