"""Reduces a diff to the lines near changes. Pure."""

from __future__ import annotations

from typing import Any

_AROUND = 2


def with_changes_only(diff: dict[str, Any]) -> dict[str, Any]:
    """Returns the diff's changed rows; `unchanged_lines_left_out` counts the equal rows that are not shown."""
    shown = _near_changes(diff["system_prompt"])
    messages = [{**message, "lines": _near_changes(message["lines"])} for message in diff["messages"]]
    left_out = len(diff["system_prompt"]) - len(shown)
    for whole, part in zip(diff["messages"], messages, strict=True):
        left_out += len(whole["lines"]) - len(part["lines"])
    return {**diff, "system_prompt": shown, "messages": messages, "unchanged_lines_left_out": left_out}


def _near_changes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    near = {
        place
        for index, row in enumerate(rows)
        if row["kind"] != "equal"
        for place in range(index - _AROUND, index + _AROUND + 1)
    }
    return [row for index, row in enumerate(rows) if index in near]
