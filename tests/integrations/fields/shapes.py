"""Converts the request types of the installed SDKs to shapes of JSON: typed dictionaries, pydantic models, botocore's
models."""

from __future__ import annotations

import datetime
import types
import typing
from collections.abc import Iterable as AbstractIterable
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as AbstractSequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin

import botocore.model
import pydantic
import typing_extensions


@dataclass(frozen=True)
class Scalar:
    """A scalar value. `kind` is string, integer, number, boolean, bytes, or json for any value."""

    kind: str


@dataclass(frozen=True)
class Choice:
    values: tuple[Any, ...]


@dataclass(frozen=True)
class ListOf:
    item: Shape


@dataclass(frozen=True)
class MapOf:
    value: Shape


@dataclass(frozen=True)
class Either:
    options: tuple[Shape, ...]


@dataclass(eq=False)
class Record:
    """An object. Its fields are filled in after its creation, since types refer to themselves. `one_of` means that
    exactly one of the fields is present (botocore's unions)."""

    name: str
    fields: dict[str, Field] = field(default_factory=dict)
    one_of: bool = False


@dataclass(frozen=True)
class Field:
    shape: Shape
    required: bool


Shape = Scalar | Choice | ListOf | MapOf | Either | Record

_SCALARS: Mapping[Any, Scalar] = {
    str: Scalar("string"),
    int: Scalar("integer"),
    float: Scalar("number"),
    bool: Scalar("boolean"),
    bytes: Scalar("bytes"),
    object: Scalar("json"),
    Any: Scalar("json"),
    dict: Scalar("json"),
    datetime.datetime: Scalar("string"),
}
_WRAPPERS = (
    typing.Required,
    typing.NotRequired,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing.Annotated,
)
_BOTOCORE: Mapping[str, str] = {
    "string": "string", "integer": "integer", "long": "integer", "float": "number", "double": "number",
    "boolean": "boolean", "blob": "bytes", "timestamp": "string",
}  # fmt: skip


def shape_of(hint: Any) -> Shape:
    """Returns the shape of a type hint. Raises TypeError for types that are no JSON, such as an open file or a
    callable."""
    found = _simple(hint)
    if found is not None:
        return found
    origin = get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _either(hint)
    if origin is not None and isinstance(origin, type):
        return _container(origin, hint)
    if typing_extensions.is_typeddict(hint):
        return _typed_dict(hint)
    if isinstance(hint, type) and issubclass(hint, pydantic.BaseModel):
        return _model(hint)
    raise TypeError(f"{hint!r} is no JSON")


def _simple(hint: Any) -> Shape | None:
    """Returns the shape of an alias or of a type without parts, None for other hints."""
    if get_origin(hint) in _WRAPPERS:
        return shape_of(get_args(hint)[0])
    if isinstance(hint, typing_extensions.TypeAliasType):
        return shape_of(hint.__value__)
    if isinstance(alias := get_origin(hint), typing_extensions.TypeAliasType):
        return shape_of(alias.__value__[get_args(hint)])
    if isinstance(hint, typing.NewType):
        return shape_of(hint.__supertype__)
    if isinstance(hint, typing.TypeVar):
        return Scalar("json")
    if get_origin(hint) is typing.Literal:
        return Choice(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Choice(tuple(member.value for member in hint))
    return _SCALARS.get(hint) if isinstance(hint, typing.Hashable) else None


def _either(hint: Any) -> Shape:
    """Returns the shape of a union without null and without options that cannot be sent."""
    options: list[Shape] = []
    for option in get_args(hint):
        if option is type(None):
            continue
        try:
            read = shape_of(option)
        except TypeError:
            continue
        options += [one for one in (read.options if isinstance(read, Either) else (read,)) if one not in options]
    if not options:
        raise TypeError(f"{hint!r} is no JSON")
    if any(isinstance(one, Choice) for one in options):
        # Literals beside `str` are the values that are known today.
        options = [one for one in options if one not in (Scalar("string"), Scalar("json"))]
    return options[0] if len(options) == 1 else Either(tuple(options))


def _container(origin: type, hint: Any) -> Shape:
    arguments = get_args(hint)
    if issubclass(origin, Mapping):
        return MapOf(shape_of(arguments[1]))
    if issubclass(origin, AbstractIterable | AbstractSequence) and arguments:
        return ListOf(shape_of(arguments[0]))
    if getattr(origin, "__name__", "") == "SequenceNotStr":
        return ListOf(shape_of(arguments[0]))
    raise TypeError(f"{hint!r} is no JSON")


_waiting: dict[Record, list[tuple[str, Any, bool]]] = {}


@cache
def _typed_dict(kind: Any) -> Record:
    record = Record(kind.__name__)
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    _waiting[record] = [(name, hint, _is_required(kind, name, hint)) for name, hint in hints.items()]
    return record


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    """Returns True for a required field, read from its marker, since dictionaries with textual annotations do not know
    it themselves."""
    marker = get_origin(hint)
    if marker in (typing.Required, typing_extensions.Required):
        return True
    return marker not in (typing.NotRequired, typing_extensions.NotRequired) and name in kind.__required_keys__


@cache
def _model(kind: type[pydantic.BaseModel]) -> Record:
    if kind.__module__.startswith("anthropic."):
        raise TypeError(f"{kind!r} is an answer; the types of requests are dictionaries")
    if kind.__name__ == "Unset" or kind.__name__.startswith("Unknown"):
        raise TypeError(f"{kind!r} stands for what is not sent, or not known")
    record = Record(kind.__name__)
    _waiting[record] = [
        (field.serialization_alias or field.alias or name, field.annotation, field.is_required())
        for name, field in kind.model_fields.items()
    ]
    return record


def fields_of(record: Record) -> Mapping[str, Field]:
    """Returns the record's fields, which are read on first use."""
    for name, hint, required in _waiting.pop(record, ()):
        try:
            shape = shape_of(hint)
            record.fields[name] = Field(shape, required or _is_type_field(name, shape))
        except TypeError:
            if required:
                raise
    return record.fields


def _is_type_field(name: str, shape: Shape) -> bool:
    """Returns True for the field that names the kind of object, which some SDKs fill in themselves."""
    return name in ("type", "role") and isinstance(shape, Choice) and len(shape.values) == 1


def parameters_shape(name: str, hints: Mapping[str, Any]) -> Record:
    """Returns the parameters of a function as one object."""
    return Record(name, {field_name: Field(shape_of(hint), required=False) for field_name, hint in hints.items()})


def botocore_shape(model: botocore.model.Shape) -> Shape:
    return _botocore(model, {})


def _botocore(model: botocore.model.Shape, known: dict[str, Record]) -> Shape:
    if isinstance(model, botocore.model.StructureShape):
        if model.name in known:
            return known[model.name]
        if model.is_document_type:
            return Scalar("json")
        record = known[model.name] = Record(model.name, one_of=bool(model.is_tagged_union))
        for name, member in model.members.items():
            record.fields[name] = Field(_botocore(member, known), name in model.required_members)
        return record
    if isinstance(model, botocore.model.ListShape):
        return ListOf(_botocore(model.member, known))
    if isinstance(model, botocore.model.MapShape):
        return MapOf(_botocore(model.value, known))
    values = tuple(getattr(model, "enum", None) or ())
    return Choice(values) if values else Scalar(_BOTOCORE[model.type_name])


def options_of(shape: Shape) -> Iterator[Shape]:
    yield from shape.options if isinstance(shape, Either) else (shape,)
