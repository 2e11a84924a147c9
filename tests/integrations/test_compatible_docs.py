"""Tests that the table of `docs/providers/compatible.md` matches the rows and the abilities of their fakes."""

from __future__ import annotations

from pathlib import Path

from integrations.providers.openai.compatible import DIALECTS
from integrations.providers.openai.dialect import Dialect
from tests.documents.tables import differences
from tests.fakes.dialects.registry import FAKES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "providers" / "compatible.md"
HEAD = (
    "Provider",
    "Address",
    "Thinking",
    "Reasoning sent back",
    "Documents",
    "Images",
    "Signed reasoning",
    "Not there",
    "Refused: dropped",
    "Ignored",
    "Beside chats",
)


def words(value: str) -> str:
    return {"pass": "as it is"}.get(value, value.replace("_", " "))


def missing(row: Dialect) -> str:
    can = FAKES[row.provider].can
    absent = {
        "tools": can.tools,
        "reasoning": can.reasoning,
        "cached tokens": can.cached_usage,
        "`developer`": row.developer_role,
        "`n` > 1": row.choices,
        "`json_schema`": row.json_schema,
        "`tool_choice`": row.tool_choice,
        "`max_completion_tokens`": row.max_completion_tokens,
    }
    return ", ".join(name for name, is_there in absent.items() if not is_there)


def signed(row: Dialect) -> str:
    can = FAKES[row.provider].can
    return "any vendor's" if can.routes else "round trip" if can.signatures else ""


def cells(row: Dialect) -> tuple[str, ...]:
    return (
        f"[{row.provider}]({row.page})" if row.page else row.provider,
        row.base_url.removeprefix("https://") or "the integration's",
        words(row.thinking),
        words(row.history),
        words(row.documents),
        words(row.images),
        signed(row),
        missing(row),
        ", ".join(f"`{name}`" for name in row.drops),
        ", ".join(f"`{name}`" for name in row.ignores),
        ", ".join(f"`{name}`" for name in row.operations),
    )


def table() -> list[str]:
    lines = [HEAD, tuple("---" for _ in HEAD), *(cells(row) for row in DIALECTS)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def test_docs__table_of_rows__equals_the_data() -> None:
    text = PAGE.read_text().partition("the rows -->\n")[2].partition("\n<!-- end of table")[0]
    found, expected = text.split("\n"), table()
    assert found == expected, differences("docs/providers/compatible.md", found, expected)
