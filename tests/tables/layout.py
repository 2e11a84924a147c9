"""Lays a table out for readers of differences: an object of many lines begins with its first item and ends with its
last, and short items share a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_WIDTH = 120


def laid_out(table: Mapping[str, Any]) -> str:
    """Returns the text of a table, whose last item is the list of its cases, each on lines of its own."""
    *head, (name, cases) = table.items()
    first = [line for key, value in head for line in _lines(f"{_plain(key)}: ", value, "  ", ",")]
    middle = [line for case in cases for line in _lines("", case, "    ", "," if case is not cases[-1] else "")]
    return "\n".join(["{", *first, f"  {_plain(name)}: [", *middle, "  ]", "}"]) + "\n"


def _lines(start: str, value: Any, indent: str, end: str) -> list[str]:
    """Returns the lines of a value behind `start`, its name in an object; `end` is what follows it."""
    line = f"{indent}{start}{_plain(value)}{end}"
    if not value or not isinstance(value, dict | list) or len(line) <= _WIDTH:
        return [line]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    first = f"{indent}{start}{opening}"
    lines = _filled(_items(value), indent + " ", len(first) - len(indent) - 1, closing + end)
    joined = first + lines[0].lstrip(" ")
    return [joined, *lines[1:]] if len(joined) <= _WIDTH else [first, *lines]


def _items(value: dict[str, Any] | list[Any]) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"{_plain(name)}: ", item) for name, item in value.items()]
    return [("", item) for item in value]


def _filled(items: list[tuple[str, Any]], indent: str, used: int, end: str) -> list[str]:
    """Returns the lines of the items, with room for `used` more characters in the first line. Items of one line each
    are joined as long as they are short together."""
    lines: list[str] = []
    is_open = False
    for place, (name, item) in enumerate(items, 1):
        own = _lines(name, item, indent, "," if place < len(items) else end)
        room = _WIDTH - (used if len(lines) == 1 else 0)
        if is_open and len(own) == 1 and len(lines[-1]) + len(own[0]) - len(indent) < room:
            lines[-1] += " " + own[0].lstrip(" ")
        else:
            lines += own
        is_open = len(own) == 1
    return lines


def _plain(value: Any) -> str:
    """Returns the value on one line, in its own characters unless half of a surrogate pair is among them."""
    text = json.dumps(value, ensure_ascii=False)
    return text if _has_bytes(text) else json.dumps(value)


def _has_bytes(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
