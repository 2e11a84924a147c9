"""Tools are found under every name that a request can give them."""

from __future__ import annotations

from typing import Any

from gateway.guardrails.tools import tools_of
from tests.tables.cases import tabled


@tabled
def test_tools__of_a_request__are_found(fields: dict[str, Any], names: set[str]) -> None:
    assert set(tools_of({"messages": [], **fields})) == names
