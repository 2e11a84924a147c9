from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from rest_framework import exceptions

from core.errors import ApplicationError, ValidationError
from core.http.exception_handler import flat_details, translate

Path = tuple[str | int, ...]

_MAX_PROBLEMS = 20
_WHOLE = "non_field_errors"


class Problem(NamedTuple):
    path: Path
    text: str
    place: str = ""


class InvalidConfigurationError(Exception):
    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(self.told(lambda _: ""))

    def told(self, place: Callable[[Path], str]) -> str:
        lines = [
            printable(f"{known or place(path)}{dotted(path)}{': ' if path else ''}{text}")
            for path, text, known in self.problems
        ]
        more = len(lines) - _MAX_PROBLEMS
        return "\n".join(lines[:_MAX_PROBLEMS] + ([f"and {more:,} more"] if more > 0 else []))


def dotted(path: Path) -> str:
    return ".".join(map(str, path))


def printable(line: str) -> str:
    """Escapes what a terminal would not print: names in a file may have any character."""
    if line.isprintable():
        return line
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in line)


@contextmanager
def within(path: Path) -> Iterator[None]:
    """Turns errors of serializers and services into problems of the fields below `path`."""
    try:
        yield
    except exceptions.ValidationError as error:
        raise InvalidConfigurationError(_problems(path, flat_details(error.detail))) from None
    except ApplicationError as error:
        if error.details:
            raise InvalidConfigurationError(_problems(path, error.details)) from None
        raise InvalidConfigurationError([Problem(path, error.message)]) from None
    except exceptions.APIException as error:
        known = translate(error)
        raise InvalidConfigurationError([Problem(path, known.message if known else str(error))]) from None


@contextmanager
def below(place: str) -> Iterator[None]:
    try:
        yield
    except ApplicationError as error:
        details = {f"{place}.{field}": list(messages) for field, messages in (error.details or {}).items()}
        raise ValidationError(error.message, details=details or {place: [error.message]}) from None


def _problems(path: Path, details: Mapping[str, Any]) -> Iterator[Problem]:
    for field, messages in details.items():
        steps = () if field == _WHOLE else tuple(int(step) if step.isdecimal() else step for step in field.split("."))
        for message in messages:
            yield Problem(path + steps, str(message))
