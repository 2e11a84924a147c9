"""The evaluation's dataclasses as plain JSON and back, without loss: a state that is read back continues exactly as
before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

T = TypeVar("T")


def to_json(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    return value.value if isinstance(value, Enum) else value


def from_json(kind: type[T], data: Any) -> T:
    """Reverses `to_json`; missing fields take their defaults.

    Raises KeyError, TypeError or ValueError for data of another form, or without a field that has no default.
    """
    read: T = _read(kind, data)
    return read


def _read(kind: Any, data: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        [inner] = [option for option in get_args(kind) if option is not NoneType]
        return None if data is None else _read(inner, data)
    if origin is tuple:
        return tuple(_read(get_args(kind)[0], item) for item in data)
    if origin is not None and issubclass(origin, Mapping):
        key_kind, value_kind = get_args(kind)
        return {_read(key_kind, key): _read(value_kind, item) for key, item in data.items()}
    if is_dataclass(kind):
        return _dataclass(kind, data)
    # A database may hand a whole float back as an integer.
    return kind(data)


def _dataclass(kind: Any, data: Any) -> Any:
    # A field that was added after the value was stored takes its default.
    return kind(**{name: _read(hint, data[name]) for name, hint in _hints(kind).items() if name in data})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
