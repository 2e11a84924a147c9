"""Reads the objects of Gemini's JSON, which is that of protocol buffers: each field has two spellings, and one object
may stand for a list of one."""

from __future__ import annotations

from typing import Any

from gateway.surfaces.checks import Json, as_object, field_of, invalid
from integrations.providers.google.field_names import camel


def message(value: Any, place: str) -> Json:
    """Returns the object with its fields in camelCase. Raises ValidationError."""
    return camelled(as_object(value, place))


def camelled(holder: Json) -> Json:
    """Returns the object with its fields in camelCase; the very object where they are."""
    for name in holder:
        if "_" in name:
            return {camel(name.lstrip("_")): value for name, value in holder.items()}
    return holder


def optional_message(holder: Json, name: str, place: str = "") -> Json | None:
    value = holder.get(name)
    return None if value is None else message(value, field_of(place, name))


def repeated(holder: Json, name: str, place: str = "") -> list[Any]:
    """Returns the items of a list, none where it is absent. Raises ValidationError."""
    value = holder.get(name)
    if isinstance(value, list):
        return value
    if value is None:
        return []
    if isinstance(value, dict):
        return [value]
    raise invalid(field_of(place, name), "expected a list of objects")


def optional_whole_number(holder: Json, name: str, place: str, *, minimum: int, maximum: int) -> int | None:
    """Returns an integer. Google writes those of 64 bits as texts, and takes a number without a fraction. Raises
    ValidationError."""
    value = holder.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise invalid(field_of(place, name), f"expected an integer from {minimum} to {maximum}")
    return value


def optional_number(holder: Json, name: str, place: str, *, minimum: float, maximum: float) -> float | None:
    value = holder.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise invalid(field_of(place, name), f"expected a number from {minimum:g} to {maximum:g}")
    return value
