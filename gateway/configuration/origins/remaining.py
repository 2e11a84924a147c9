"""Each value of a foreign configuration is taken once; what nobody has taken is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any, NamedTuple

from gateway.configuration.problems import InvalidConfigurationError, Path, Problem, dotted

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_NO_COUNTERPART = "has no counterpart here"


class Note(NamedTuple):
    """What a person has to know about one value. Values may be secrets, so notes contain none. With a lossy one the
    gateway answers differently from the source."""

    path: Path
    text: str
    is_lossy: bool = False


@dataclass
class Imported:
    project: dict[str, Any] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def number_of(given: Any) -> int | float | None:
    """Also parses a text: YAML 1.1 reads `6e-07` as one, and JSON is often written by hand."""
    if isinstance(given, str) and _NUMBER.fullmatch(given.strip()):
        read = float(given)
        given = int(read) if read.is_integer() else read
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
        return None
    return given


class Remaining:
    """The values that have not been taken yet.

    `reasons` say, by pattern of the dotted path such as `general_settings.database_*`, why a value has no counterpart
    or what replaces it.
    """

    def __init__(self, values: Mapping[str, Any], reasons: Mapping[str, str]) -> None:
        self._values: Any = deepcopy(dict(values))
        self._reasons = reasons
        self.notes: list[Note] = []

    def take(self, *path: str | int) -> Any:
        holder = self._at(path[:-1])
        if isinstance(holder, list) and isinstance(path[-1], int) and path[-1] < len(holder):
            found, holder[path[-1]] = holder[path[-1]], None
            return found
        return holder.pop(path[-1], None) if isinstance(holder, dict) else None

    def take_text(self, *path: str | int) -> str:
        return str(self._take_a((str, int, float), "a text", path) or "")

    def take_number(self, *path: str | int) -> int | float | None:
        given = self.take(*path)
        found = number_of(given)
        if given is not None and found is None:
            self.note(path, "is no number, and is left out")
        return found

    def take_list(self, *path: str | int) -> list[Any]:
        return self._take_a((list,), "a list", path) or []

    def take_object(self, *path: str | int) -> dict[str, Any]:
        return self._take_a((dict,), "an object", path) or {}

    def size(self, *path: str | int) -> int:
        found = self._at(path)
        if found is not None and not isinstance(found, list):
            raise InvalidConfigurationError([Problem(path, "Must be a list.")])
        return len(found or ())

    def names(self, *path: str | int) -> list[str]:
        found = self._at(path)
        if found is not None and not isinstance(found, dict):
            raise InvalidConfigurationError([Problem(path, "Must be an object.")])
        return list(found or ())

    def fill(self, path: Path, values: Mapping[str, Any]) -> None:
        found = self._at(path)
        if isinstance(found, dict):
            found.update({name: value for name, value in values.items() if name not in found})

    def note(self, path: Path, text: str, *, is_lossy: bool = False) -> None:
        self.notes.append(Note(path, text, is_lossy))

    def told(self) -> list[Note]:
        return [*self.notes, *(Note(path, self._reason(path)) for path in _leaves(self._values, ()))]

    def _at(self, path: Path) -> Any:
        found = self._values
        for step in path:
            if isinstance(found, dict):
                found = found.get(str(step))
            elif isinstance(found, list) and isinstance(step, int) and step < len(found):
                found = found[step]
            else:
                return None
        return found

    def _take_a(self, kinds: tuple[type, ...], words: str, path: Path) -> Any:
        found = self.take(*path)
        if found is None or (isinstance(found, kinds) and not isinstance(found, bool)):
            return found
        raise InvalidConfigurationError([Problem(path, f"Must be {words}.")])

    def _reason(self, path: Path) -> str:
        name = dotted(path)
        return next((text for form, text in self._reasons.items() if fnmatchcase(name, form)), _NO_COUNTERPART)


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, place))
    elif value is not None and value not in ({}, []):
        yield path
