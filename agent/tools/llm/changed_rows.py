"""Reduces a diff to the lines near changes. Pure."""

from __future__ import annotations

from typing import Any

_AROUND = 2


def with_changes_only(diff: dict[str, Any]) -> dict[str, Any]:
    """Returns the diff's changed rows; `unchanged_lines_left_out` counts the equal rows that are not shown."""
    rows = diff["system_prompt"]
    near = {
        place
        for index, row in enumerate(rows)
        if row["kind"] != "equal"
        for place in range(index - _AROUND, index + _AROUND + 1)
    }
    shown = [row for index, row in enumerate(rows) if index in near]
    return {**diff, "system_prompt": shown, "unchanged_lines_left_out": len(rows) - len(shown)}
