"""Encodes a result as JSON of bounded length: long texts are cut and say by how much, lists end at whole records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from rest_framework.utils.encoders import JSONEncoder

from agent.tools.base import OUTPUT_CHARACTERS


class _Measure(NamedTuple):
    characters: int
    items: int
    keys: int = 100
    depth: int = 16


# The measures are tried in order, and the first with which a result fits is used.
_DETAIL = (
    _Measure(20_000, 100),
    _Measure(8_000, 100),
    _Measure(4_000, 60),
    _Measure(2_000, 40),
    _Measure(1_000, 20),
    _Measure(400, 12),
    _Measure(160, 8, 60, 8),
    _Measure(80, 4, 40, 5),
    _Measure(60, 2, 12, 3),
)
_LISTED = _DETAIL[4:]
_TOO_LARGE = {"truncated": True, "note": "The result is too large to show. Ask for less."}


class _TooLong(Exception):
    pass


class _LeftOut(str):
    __slots__ = ()


def render(result: Mapping[str, Any]) -> str:
    """Formats times and money as the management API does. Raises ValueError for NaN and infinity."""
    listed = isinstance(result.get("results"), list)
    for measure in _LISTED if listed else _DETAIL:
        try:
            text = _listing(result, measure) if listed else _dump(_Cutter(measure).cut(result))
        except _TooLong:
            continue
        if len(text) <= OUTPUT_CHARACTERS:
            return text
    return _dump(_TOO_LARGE)


def _listing(result: Mapping[str, Any], measure: _Measure) -> str:
    records = result["results"]
    rest = _Cutter(measure).cut({name: value for name, value in result.items() if name != "results"})
    hints = {"next_offset": result["offset"] + len(records)} if "offset" in result else {}
    room = OUTPUT_CHARACTERS - len(_dump({**rest, "truncated": True, **hints, "results": []}))
    shown: list[Any] = []
    for record in records:
        try:
            cut = _Cutter(measure).cut(record)
        except _TooLong:
            break
        room -= len(_dump(cut)) + 1
        if room < 0:
            break
        shown.append(cut)
    if len(shown) == len(records):
        return _dump({**rest, "results": shown})
    if not shown:
        raise _TooLong
    if hints:
        hints["next_offset"] = result["offset"] + len(shown)
    return _dump({**rest, "truncated": True, **hints, "results": shown})


class _Cutter:
    def __init__(self, measure: _Measure) -> None:
        self._measure = measure
        self._room = OUTPUT_CHARACTERS

    def cut(self, value: Any, depth: int = 0) -> Any:
        self._spend(1)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping | list | tuple) and depth > self._measure.depth:
            return self._text("… (nested too deeply to show)")
        if isinstance(value, Mapping):
            return self._object(value, depth)
        if isinstance(value, list | tuple):
            return [self.cut(item, depth + 1) for item in self._middle_left_out(list(value))]
        return value

    def _object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        names = list(value)[: self._measure.keys]
        cut = {self._text(str(name)): self.cut(value[name], depth + 1) for name in names}
        if len(value) > len(names):
            cut["…"] = f"{len(value) - len(names)} more left out"
        return cut

    def _text(self, text: str) -> str:
        max_characters = self._measure.characters
        if len(text) > max_characters and not isinstance(text, _LeftOut):
            text = f"{text[:max_characters]}… [{len(text) - max_characters} characters cut]"
        self._spend(len(text))
        return text

    def _middle_left_out(self, values: list[Any]) -> list[Any]:
        """Keeps the beginning and the end of a list, which matter most in a conversation."""
        if len(values) <= self._measure.items:
            return values
        half = self._measure.items // 2
        return [*values[:half], _LeftOut(f"… {len(values) - 2 * half} items left out …"), *values[-half:]]

    def _spend(self, characters: int) -> None:
        self._room -= characters
        if self._room < 0:
            raise _TooLong


def _dump(value: Any) -> str:
    text = json.dumps(value, cls=JSONEncoder, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Old rows may hold NUL characters and surrogates, which no transport carries.
    return text.encode("utf-8", "replace").decode()
