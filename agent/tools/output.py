"""A result as bounded JSON text: long texts are cut with the count of what is gone, lists at whole records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rest_framework.utils.encoders import JSONEncoder

from agent.tools.base import OUTPUT_CHARACTERS

# How long a text and a list within a record may be: the first pair with which a result fits is taken.
_DETAIL = ((20_000, 100), (8_000, 100), (4_000, 60), (2_000, 40), (1_000, 20), (400, 12), (160, 8), (80, 4))
_LISTED = _DETAIL[4:]
_MOST_KEYS = 100
_DEEPEST = 16


def render(result: Mapping[str, Any]) -> str:
    """Times and money as in the management API. Raises ValueError for what is no JSON, as NaN."""
    listed = isinstance(result.get("results"), list)
    for characters, items in _LISTED if listed else _DETAIL:
        text = _listing(result, characters, items) if listed else _dump(_cut(result, characters, items))
        if text is not None and len(text) <= OUTPUT_CHARACTERS:
            return text
    # Escaping makes a text at most twice as long, two characters for one.
    start = _dump(_cut(result, *_DETAIL[-1]))[: OUTPUT_CHARACTERS // 2 - 100]
    return _dump({"truncated": True, "beginning": start})


def _listing(result: Mapping[str, Any], characters: int, items: int) -> str | None:
    """With as many records as fit; None when not even one does."""
    rest = {name: _cut(value, characters, items) for name, value in result.items() if name != "results"}
    hints = {"next_offset": result["offset"] + len(result["results"])} if "offset" in result else {}
    room = OUTPUT_CHARACTERS - len(_dump({**rest, "truncated": True, **hints, "results": []}))
    shown: list[Any] = []
    for record in result["results"]:
        cut = _cut(record, characters, items)
        room -= len(_dump(cut)) + 1
        if room < 0:
            break
        shown.append(cut)
    if len(shown) == len(result["results"]):
        return _dump({**rest, "results": shown})
    if not shown:
        return None
    if hints:
        hints["next_offset"] = result["offset"] + len(shown)
    return _dump({**rest, "truncated": True, **hints, "results": shown})


def _cut(value: Any, characters: int, items: int, depth: int = 0) -> Any:
    if isinstance(value, str):
        return _cut_text(value, characters)
    if depth > _DEEPEST and isinstance(value, Mapping | list | tuple):
        return "… (nested too deeply to show)"
    if isinstance(value, Mapping):
        kept = list(value.items())[:_MOST_KEYS]
        cut = {_cut_text(str(name), characters): _cut(item, characters, items, depth + 1) for name, item in kept}
        if len(value) > _MOST_KEYS:
            cut["…"] = f"{len(value) - _MOST_KEYS} more left out"
        return cut
    if isinstance(value, list | tuple):
        return [
            item if isinstance(item, _LeftOut) else _cut(item, characters, items, depth + 1)
            for item in _middle_left_out(list(value), items)
        ]
    return value


class _LeftOut(str):
    __slots__ = ()


def _cut_text(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[:characters]}… [{len(text) - characters} characters cut]"


def _middle_left_out(values: list[Any], items: int) -> list[Any]:
    """A conversation is told by how it begins and how it ends."""
    if len(values) <= items:
        return values
    half = items // 2
    return [*values[:half], _LeftOut(f"… {len(values) - 2 * half} items left out …"), *values[-half:]]


def _dump(value: Any) -> str:
    text = json.dumps(value, cls=JSONEncoder, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # What old rows may hold and no transport takes.
    return text.encode("utf-8", "replace").decode()
