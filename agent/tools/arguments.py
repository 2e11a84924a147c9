"""Checks the arguments that a model wrote for a call before any tool sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from agent.tools.base import Arguments
from agent.tools.schema import choices_of, schema_of
from core.errors import ValidationError

# The maximum length in characters, far above any tool's arguments; longer text is refused before it is decoded.
MAXIMUM_CHARACTERS = 100_000

_PATH = re.compile(r" - at `\$\.?([^`\[]*)[^`]*`$")
_MISSING = re.compile(r"missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"contains unknown field `(.*)`", re.DOTALL)

Known = TypeVar("Known", bound=Arguments)


def read_arguments(given: str | Mapping[str, Any], known: type[Known]) -> Known:
    """Decodes JSON text or takes a decoded value; null counts as left out. Raises ValidationError naming the field."""
    values = _decoded(given) if isinstance(given, str) else given
    if not isinstance(values, Mapping):
        raise ValidationError("The arguments must be a JSON object.", code="invalid_json")
    chosen = {name: value for name, value in values.items() if value is not None}
    for name, value in chosen.items():
        if any(_unstorable(text) for text in _texts((name, value))):
            raise _refused(_printable(str(name)), "NUL characters and single surrogates are not allowed in text.")
    try:
        return msgspec.convert(chosen, known)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _named(str(error), known) from None


def _decoded(text: str) -> Any:
    if len(text) > MAXIMUM_CHARACTERS:
        raise ValidationError(f"The arguments have more than {MAXIMUM_CHARACTERS} characters.", code="invalid_json")
    try:
        return msgspec.json.decode(text) if text.strip() else {}
    except (ValueError, RecursionError):  # A single surrogate raises UnicodeEncodeError, which is a ValueError.
        raise ValidationError("The arguments are not valid JSON.", code="invalid_json") from None


def _named(message: str, known: type[Arguments]) -> ValidationError:
    path, arguments = _PATH.search(message), schema_of(known)["properties"]
    # A field that an object within an argument lacks, or has too much, is told under the argument's name.
    if path is None or path[1] not in arguments:
        if found := _UNKNOWN.search(message):
            names = ", ".join(arguments) or "none"
            return _refused(_printable(found[1]), f"There is no such argument. There are: {names}.")
        if found := _MISSING.search(message):
            return _refused(found[1], "This argument is required.", code="missing_field")
    field = path[1] if path else "arguments"
    problem = message[: path.start()] if path else message
    if choices := choices_of(known, field):
        problem = f"Must be one of {', '.join(map(str, choices))}"
    return _refused(field, f"{problem}.")


def _refused(field: str, problem: str, code: str = "invalid_value") -> ValidationError:
    return ValidationError(f"{field}: {problem}", code=code, details={field: [problem]})


def _printable(name: str) -> str:
    return ascii(name[:80])[1:-1]


def _unstorable(text: str) -> bool:
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list | tuple):
            waiting.extend(item)
        elif isinstance(item, Mapping):
            waiting.extend(item)
            waiting.extend(item.values())
