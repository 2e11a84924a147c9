"""Whether each value of a foreign configuration is in the project that was made of it, or told about."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.configuration.origins.remaining import Imported
from gateway.configuration.secrets import Secret

Path = tuple[str | int, ...]


# What only holds other values together: names of credentials within the file, the month of a budget,
# and that there is a cache at all.
_STRUCTURE = frozenset({"credential_name", "litellm_credential_name", "budget_duration", "cache"})


def told(found: Imported) -> dict[str, str]:
    """Returns the notes by the path of what they are about."""
    return {".".join(map(str, note.path)): note.text for note in found.notes}


def unaccounted(values: Any, found: Imported, environ: Mapping[str, str]) -> list[str]:
    """Returns the places of values that are neither in the project, by what they say or what the variable that they
    name holds, nor in a note about them or what they belong to."""
    told = [tuple(map(str, note.path)) for note in found.notes]
    made = json.dumps(found.project, default=_shown, ensure_ascii=False)
    return [
        ".".join(map(str, path))
        for path, value in _leaves(values, ())
        if path[-1] not in _STRUCTURE
        and not any(tuple(map(str, path))[: len(note)] == note for note in told)
        and not _is_in(value, made, environ)
    ]


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, place))
    elif value is not None:
        yield path, value


def _is_in(value: Any, made: str, environ: Mapping[str, str]) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        # Retries are attempts, and prices of a token those of a million.
        return any(f"{one:g}" in made for one in (value, value + 1, value * 1_000_000))
    text = value.removeprefix("os.environ/").strip("${}").removesuffix("/*")
    parts = [text, text.rpartition("/")[2], text.rpartition("::")[2], *filter(None, [environ.get(text)])]
    return any(json.dumps(part, ensure_ascii=False)[1:-1] in made for part in parts)


def _shown(value: Any) -> str:
    return str(value.value) if isinstance(value, Secret) else str(value)
