"""Placeholders `{{ name }}` in the texts of a version: compiled once, filled in by text substitution only.

- A placeholder is two braces, a name of ASCII letters, digits and underscores that does not begin with a digit, and two
  braces; blanks around the name do not matter. Anything else in braces is plain text, whatever language it looks like.
- A declared variable has a type and may be required. Left out, a required one is an error and an optional one is empty.
  JSON null is left out.
- A placeholder that no variable declares takes a value of any type, and stays as it is written when none is given: the
  author may have meant the text.
- A value that belongs to neither is an error.
- Text goes in as it is; other values as JSON. Values are never read for placeholders.
- A value that arrives as text (a header) for a declared number, boolean, array or object is read as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prompts.errors import InvalidVariableError, InvalidVersionError, MissingVariableError, UnknownVariableError

NAME_CHARACTERS = 100
MAX_VARIABLES = 200
# The gateway's limit for one message (docs/limits.md#sizes-of-a-request).
MAX_RENDERED_BYTES = 1_048_576

RoleAndText = tuple[str, str]
"""The role of a message, and its text."""

_NAME = rf"[A-Za-z_][A-Za-z0-9_]{{0,{NAME_CHARACTERS - 1}}}"
_PLACEHOLDER = re.compile(rf"\{{\{{\s*({_NAME})\s*\}}\}}", re.ASCII)
_VARIABLE_NAME = re.compile(_NAME, re.ASCII)
_FIELDS = frozenset({"name", "type", "required"})
_BYTES_PER_CHARACTER = 4  # The maximum length in bytes of UTF-8.


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    type: str
    required: bool


@dataclass(frozen=True, slots=True)
class Placeholder:
    name: str
    start: int


@dataclass(frozen=True, slots=True)
class Template:
    """The compiled messages of a version, usually one of role system. `names` are all its variables: the declared ones
    and undeclared placeholders."""

    variables: tuple[Variable, ...]
    names: frozenset[str]
    _undeclared: tuple[str, ...]
    _pieces: tuple[str, ...]  # The text and the placeholders as they are written, in order.
    _slots: tuple[tuple[int, str], ...]  # The index in `_pieces` and the name of each placeholder.
    _ends: tuple[tuple[str, int], ...]  # The role of each message, and the index in `_pieces` after its last piece.

    @property
    def messages(self) -> list[RoleAndText]:
        return self._split(self._pieces)

    def render(
        self,
        values: Mapping[str, Any],
        *,
        tolerated: Collection[str] = (),
        limit_bytes: int = MAX_RENDERED_BYTES,
    ) -> str:
        """Returns the concatenated texts with `values` filled in, at most `limit_bytes` of UTF-8.

        Unknown names in `tolerated` are no error: they belong to a rollout's other variant, and a request has to fit
        both. Raises MissingVariableError, InvalidVariableError and UnknownVariableError.
        """
        return "".join(self._filled(values, tolerated, limit_bytes))

    def render_messages(
        self,
        values: Mapping[str, Any],
        *,
        tolerated: Collection[str] = (),
        limit_bytes: int = MAX_RENDERED_BYTES,
    ) -> list[RoleAndText]:
        return self._split(self._filled(values, tolerated, limit_bytes))

    def _split(self, pieces: Sequence[str]) -> list[RoleAndText]:
        found, start = [], 0
        for role, end in self._ends:
            text = "".join(pieces[start:end])
            start = end
            if text:
                found.append((role, text))
        return found

    def _filled(self, values: Mapping[str, Any], tolerated: Collection[str], limit_bytes: int) -> list[str]:
        if values and not self.names.issuperset(values):
            self._refuse_unknown(values, tolerated)
        texts = self._texts(values)
        pieces = list(self._pieces)
        for index, name in self._slots:
            text = texts.get(name)
            if text is not None:
                pieces[index] = text
        characters = sum(map(len, pieces))
        if characters * _BYTES_PER_CHARACTER > limit_bytes:
            self._check_size(pieces, texts, limit_bytes)
        if texts:
            _require_texts(texts)
        return pieces

    def _refuse_unknown(self, values: Mapping[str, Any], tolerated: Collection[str]) -> None:
        for name in values:
            if name not in self.names and name not in tolerated:
                raise UnknownVariableError(name, "is not one of this prompt's.")

    def _texts(self, values: Mapping[str, Any]) -> dict[str, str]:
        texts = {}
        for variable in self.variables:
            value = values.get(variable.name)
            if value.__class__ is str and variable.type == "string":
                texts[variable.name] = value
            elif value is not None:
                texts[variable.name] = _text_of(variable, value)
            elif variable.required:
                raise MissingVariableError(variable.name, "is required.")
            else:
                texts[variable.name] = ""
        for name in self._undeclared:
            value = values.get(name)
            if value is not None:
                texts[name] = value if isinstance(value, str) else _json_of(name, value)
        return texts

    def _check_size(self, pieces: Sequence[str], texts: Mapping[str, str], limit_bytes: int) -> None:
        """Checks the size before building the text: a long value in many placeholders would exhaust the memory."""
        _require_texts(texts)
        if sum(map(len, pieces)) <= limit_bytes and sum(len(piece.encode()) for piece in pieces) <= limit_bytes:
            return
        raise InvalidVariableError(
            self._largest_variable(texts),
            f"makes the prompt too long: at most {limit_bytes} bytes with all values in place.",
        )

    def _largest_variable(self, texts: Mapping[str, str]) -> str:
        taken: Counter[str] = Counter()
        for _, name in self._slots:
            taken[name] += len(texts.get(name, ""))
        return taken.most_common(1)[0][0] if taken else ""


def compile_template(system_prompt: str, variables: Sequence[Mapping[str, Any]]) -> Template:
    """Raises InvalidVersionError with the variable's field: `variables.0.type`."""
    return compile_messages([("system", system_prompt)], variables)


def compile_messages(messages: Iterable[RoleAndText], variables: Sequence[Mapping[str, Any]]) -> Template:
    declared = _declared(variables)
    pieces: list[str] = []
    slots: list[tuple[int, str]] = []
    ends: list[tuple[str, int]] = []
    for role, text in messages:
        _compile_text(text, pieces, slots)
        ends.append((role, len(pieces)))
    known = {variable.name for variable in declared}
    undeclared = dict.fromkeys(name for _, name in slots if name not in known)
    return Template(
        variables=declared,
        names=frozenset(known.union(undeclared)),
        _undeclared=tuple(undeclared),
        _pieces=tuple(pieces),
        _slots=tuple(slots),
        _ends=tuple(ends),
    )


def _compile_text(text: str, pieces: list[str], slots: list[tuple[int, str]]) -> None:
    position = 0
    for placeholder in _PLACEHOLDER.finditer(text):
        pieces.append(text[position : placeholder.start()])
        slots.append((len(pieces), placeholder[1]))
        pieces.append(placeholder[0])
        position = placeholder.end()
    pieces.append(text[position:])


def find_placeholders(text: str) -> list[Placeholder]:
    return [Placeholder(found[1], found.start()) for found in _PLACEHOLDER.finditer(text)]


def _declared(variables: Sequence[Mapping[str, Any]]) -> tuple[Variable, ...]:
    if len(variables) > MAX_VARIABLES:
        raise InvalidVersionError({"variables": [f"At most {MAX_VARIABLES} variables are allowed."]})
    found: dict[str, Variable] = {}
    for index, item in enumerate(variables):
        variable = _variable(item, f"variables.{index}")
        if variable.name in found:
            raise InvalidVersionError({f"variables.{index}.name": [f"{variable.name} is declared twice."]})
        found[variable.name] = variable
    return tuple(found.values())


def _variable(item: Any, path: str) -> Variable:
    if not isinstance(item, Mapping):
        raise InvalidVersionError({path: ["Must be an object with name, type and required."]})
    # Unknown members, such as `default`, are refused: ignoring them would be worse.
    for name in item:
        if name not in _FIELDS:
            raise InvalidVersionError({f"{path}.{name}": ["Unknown field; a variable has name, type and required."]})
    name, kind, required = item.get("name"), item.get("type", "string"), item.get("required", False)
    if not isinstance(name, str) or not _VARIABLE_NAME.fullmatch(name):
        problem = f"Must be 1 to {NAME_CHARACTERS} letters, digits or underscores, and not begin with a digit."
        raise InvalidVersionError({f"{path}.name": [problem]})
    if not isinstance(kind, str) or kind not in TYPES:
        raise InvalidVersionError({f"{path}.type": [f"Must be one of {', '.join(TYPES)}."]})
    if not isinstance(required, bool):
        raise InvalidVersionError({f"{path}.required": ["Must be true or false."]})
    return Variable(name, kind, required)


def _text_of(variable: Variable, value: Any) -> str:
    if variable.type == "string":
        if not isinstance(value, str):
            raise _wrong_type(variable)
        return value
    if isinstance(value, str):
        value = _parsed(variable, value)
    if not TYPES[variable.type](value):
        raise _wrong_type(variable)
    return _json_of(variable.name, value)


def _parsed(variable: Variable, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong_type(variable) from None


def _json_of(name: str, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidVariableError(name, "is not a JSON value.") from None


def _wrong_type(variable: Variable) -> InvalidVariableError:
    article = "an" if variable.type in ("array", "object") else "a"
    return InvalidVariableError(variable.name, f"must be {article} {variable.type}.")


def _require_texts(texts: Mapping[str, str]) -> None:
    """Refuses a lone surrogate, which JSON can express but UTF-8 cannot encode."""
    for name, text in texts.items():
        if text.isascii():
            continue
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidVariableError(name, "is not well-formed text.") from None
