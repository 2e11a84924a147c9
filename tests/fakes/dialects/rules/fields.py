"""Finds fields that a vendor does not know, by the types of its official SDK, which list every field of a request."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from typing_extensions import get_type_hints, is_typeddict

Place = tuple[str | int, ...]
_DISCRIMINATORS = ("type", "role")
_TRANSPARENT = (Annotated, Required, NotRequired)


def unknown_fields(value: Any, kind: Any) -> Iterator[Place]:
    """Yields the place of each field in `value` that the type does not have, at every depth. `kind` is a TypedDict, a
    pydantic model (whose wire names are in camel case), or a container or union of them; values of other types are
    free."""
    shapes = list(_shapes(kind))
    if isinstance(value, Mapping):
        yield from _unknown_in(value, shapes)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            for place in unknown_fields(item, Union[tuple(_items(shapes))]):  # noqa: UP007  # built of a tuple
                yield (index, *place)


def _unknown_in(value: Mapping[str, Any], shapes: list[Any]) -> Iterator[Place]:
    objects = [shape for shape in shapes if _is_object(shape)]
    if not objects or len(objects) < sum(_holds_any_object(shape) for shape in shapes):
        return
    fitting = [_fields(shape) for shape in objects if _fits(value, shape)]
    if not fitting:
        return  # The discriminator is none that the vendor knows, which is another rule's matter.
    for name, held in value.items():
        kinds = [fields[name] for fields in fitting if name in fields]
        if not kinds:
            yield (name,)
            continue
        for place in unknown_fields(held, Union[tuple(kinds)]):  # noqa: UP007  # built of a tuple
            yield (name, *place)


def _shapes(kind: Any) -> Iterator[Any]:
    """Yields the members of a union, and any other type as it is."""
    origin = get_origin(kind)
    if origin in _TRANSPARENT:
        yield from _shapes(get_args(kind)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(kind):
            yield from _shapes(member)
    else:
        yield kind


def _items(shapes: Iterable[Any]) -> Iterator[Any]:
    found = False
    for shape in shapes:
        arguments = get_args(shape)
        if len(arguments) == 1 and get_origin(shape) not in (Literal, type):
            found = True
            yield arguments[0]
    if not found:
        yield Any


def _is_object(shape: Any) -> bool:
    return is_typeddict(shape) or (isinstance(shape, type) and issubclass(shape, BaseModel))


def _holds_any_object(shape: Any) -> bool:
    """Returns True for types that an object is a value of, such as a dictionary of the client's own fields."""
    return shape in (Any, object) or _is_object(shape) or get_origin(shape) in (dict, Mapping) or shape is dict


@cache
def _fields(shape: Any) -> Mapping[str, Any]:
    if is_typeddict(shape):
        return get_type_hints(shape, include_extras=True)
    return {field.alias or to_camel(name): field.annotation for name, field in shape.model_fields.items()}


def _fits(value: Mapping[str, Any], shape: Any) -> bool:
    """Returns False when the value's `type` or `role` is not that of the shape."""
    fields = _fields(shape)
    for name in _DISCRIMINATORS:
        allowed = [choice for kind in _shapes(fields.get(name, Any)) for choice in _choices(kind)]
        if allowed and name in value and value[name] not in allowed:
            return False
        if allowed and name not in value and name in getattr(shape, "__required_keys__", ()):
            return False
    return True


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()
