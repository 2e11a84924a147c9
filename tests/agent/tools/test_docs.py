from __future__ import annotations

from pathlib import Path

import pytest

from agent.tools import registry
from agent.tools.base import OUTPUT_CHARACTERS, Tool
from agent.tools.pages import DEFAULT_LIMIT, MAXIMUM_LIMIT

PAGE = Path(__file__).resolve().parents[3] / "docs" / "agent-tools.md"


def row(tool: Tool) -> str:
    required = tool.schema["required"]
    names = [f"**`{name}`**" if name in required else f"`{name}`" for name in tool.schema["properties"]]
    return f"| `{tool.name}` | `{tool.scope}` | {', '.join(names) or 'none'} | {tool.description} |"


@pytest.mark.parametrize("tool", registry.ALL, ids=lambda tool: tool.name)
def test_tool__is_described_as_it_is(tool: Tool) -> None:
    assert row(tool) in PAGE.read_text().splitlines()


def test_page__describes_no_other_tool() -> None:
    described = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert described == [row(tool) for tool in registry.ALL]


def test_page__names_the_bounds() -> None:
    text = PAGE.read_text()
    for bound in (f"{OUTPUT_CHARACTERS:,} characters", f"default {DEFAULT_LIMIT}, at most {MAXIMUM_LIMIT}"):
        assert bound in text
