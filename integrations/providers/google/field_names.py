"""Google's JSON is in camelCase; Google also accepts the protocol buffers' snake_case."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=1024)
def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def spellings(names: Iterable[str]) -> dict[str, str]:
    return {spelling: name for name in names for spelling in (name, snake(name))}
