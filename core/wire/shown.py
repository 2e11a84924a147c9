from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from functools import cache
from inspect import get_annotations
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)

Shape = TypeVar("Shape")

_NOTHING = object()


def shown(record: DataclassInstance) -> dict[str, Any]:
    """Returns a dataclass's fields by name, its own before inherited ones.

    Money becomes a JSON number: a double prints the ten places of any sum below 100,000 dollars exactly.
    """
    return {name: _value(getattr(record, name)) for name in _names(type(record))}


def seen_as(kind: type[Record], row: object, **more: Any) -> Record:
    """Returns a record: in each field what `more` has, or else the row's attribute of that name."""
    return kind(**{field.name: getattr(row, field.name) for field in fields(kind) if field.name not in more}, **more)


def _value(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if is_dataclass(value) and not isinstance(value, type):
        return shown(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    return value


@cache
def _names(kind: type[DataclassInstance]) -> Sequence[str]:
    known = {field.name for field in fields(kind)}
    return list(dict.fromkeys(name for one in kind.__mro__ for name in get_annotations(one) if name in known))


def shown_as(shape: type[Shape], *records: Any, **given: Any) -> Shape:
    """Fills a typed dictionary: `given` values as they are, each other field from the first record with an attribute of
    its name.

    An attribute's money becomes a JSON number, a record the typed dictionary that the field names, and an empty text
    null if the field may be null.
    """
    kind: Any = shape
    found: Any = {
        name: given[name] if name in given else convert(_attribute(records, name)) for name, convert in _fields(kind)
    }
    return found  # type: ignore[no-any-return]  # Its fields are those of the shape.


@cache
def _fields(shape: Any) -> Sequence[tuple[str, Callable[[Any], Any]]]:
    return [(name, _converter(hint)) for name, hint in get_type_hints(shape).items()]


def _converter(hint: Any) -> Callable[[Any], Any]:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if NoneType in get_args(hint) else [hint]
    kind = kinds[0]
    if is_typeddict(kind):
        return lambda value: None if value is None else shown_as(kind, value)
    if get_origin(kind) is list and is_typeddict(member := get_args(kind)[0]):
        return lambda value: [shown_as(member, one) for one in value]
    if kind is UUID:
        return lambda value: UUID(value) if value and isinstance(value, str) else value or None
    if kinds != [hint]:
        return lambda value: None if value == "" else _value(value)
    return _value


def _attribute(records: Sequence[Any], name: str) -> Any:
    for record in records[:-1]:
        if (value := getattr(record, name, _NOTHING)) is not _NOTHING:
            return value
    return getattr(records[-1], name)
