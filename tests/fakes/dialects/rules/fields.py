"""Finds fields that a vendor does not know, by the types of its official SDK, which list every field of a request."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import get_type_hints, is_typeddict

Place = tuple[str | int, ...]
_DISCRIMINATORS = ("type", "role")
_TRANSPARENT = (Annotated, Required, NotRequired)


def unknown_fields(value: Any, kind: Any) -> Iterator[Place]:
    """Yields the place of each unknown field, at every depth. `kind` is a TypedDict, a pydantic model, or a container
    or union of them; values of other types are free."""
    for place, held, shapes in _objects(value, kind):
        known = {name for shape in shapes for name in _fields(shape)}
        yield from ((*place, name) for name in held if name not in known)


def missing_fields(value: Any, kind: Any) -> Iterator[Place]:
    """Yields the fields that a TypedDict requires and `value` lacks, where only one type fits."""
    for place, held, shapes in _objects(value, kind):
        written = [shape for shape in shapes if is_typeddict(shape)]  # The others are the types of answers.
        if len(written) == 1:
            yield from ((*place, name) for name in _required(written[0]) if name not in held)


def tags(kind: Any) -> tuple[str, ...]:
    """Returns the values of `type` by which the members of a union differ."""
    kinds = [_fields(shape).get("type", Any) for shape in _shapes(kind) if _is_object(shape)]
    return tuple(sorted({tag for one in kinds for inner in _shapes(one) for tag in _choices(inner)}))


def _objects(value: Any, kind: Any) -> Iterator[tuple[Place, Mapping[str, Any], list[Any]]]:
    shapes = list(_shapes(kind))
    if isinstance(value, list | tuple):
        inner: Any = Union[tuple(_items(shapes))]  # noqa: UP007  # built of a tuple
        for index, item in enumerate(value):
            for place, held, fitting in _objects(item, inner):
                yield (index, *place), held, fitting
    elif isinstance(value, Mapping):
        yield from _objects_in(value, shapes)


def _objects_in(value: Mapping[str, Any], shapes: list[Any]) -> Iterator[tuple[Place, Mapping[str, Any], list[Any]]]:
    for shape in shapes:
        if get_origin(shape) in (dict, Mapping) and len(get_args(shape)) == 2:
            for name, held in value.items():
                for place, found, inner in _objects(held, get_args(shape)[1]):
                    yield (name, *place), found, inner
    objects = [shape for shape in shapes if _is_object(shape)]
    if len(objects) < sum(_holds_any_object(shape) for shape in shapes):
        return
    fitting = [shape for shape in objects if _fits(value, shape)]
    if not fitting:
        return  # The discriminator is none that the vendor knows, which is another rule's matter.
    yield (), value, fitting
    for name, held in value.items():
        kinds = tuple(_fields(shape)[name] for shape in fitting if name in _fields(shape))
        if kinds:
            for place, found, inner in _objects(held, Union[kinds]):  # noqa: UP007  # built of a tuple
                yield (name, *place), found, inner


def _shapes(kind: Any) -> Iterator[Any]:
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
    """Returns True for types that hold any object, such as a dictionary of the client's own fields."""
    return shape in (Any, object) or _is_object(shape) or get_origin(shape) in (dict, Mapping) or shape is dict


@cache
def _fields(shape: Any) -> Mapping[str, Any]:
    if is_typeddict(shape):
        return get_type_hints(shape, include_extras=True)
    return {field.alias or name: field.annotation for name, field in shape.model_fields.items()}


@cache
def _required(shape: Any) -> tuple[str, ...]:
    """The TypedDict's own list does not read annotations that are texts."""
    markers = {name: get_origin(kind) for name, kind in _fields(shape).items()}
    marked = (name for name, marker in markers.items() if marker is Required)
    return (
        tuple(sorted(name for name in markers if markers[name] is not NotRequired))
        if shape.__total__
        else tuple(marked)
    )


def _fits(value: Mapping[str, Any], shape: Any) -> bool:
    fields = _fields(shape)
    for name in _DISCRIMINATORS:
        allowed = [choice for kind in _shapes(fields.get(name, Any)) for choice in _choices(kind)]
        if allowed and name in value and value[name] not in allowed:
            return False
        if allowed and name not in value and is_typeddict(shape) and name in _required(shape):
            return False
    return True


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()
