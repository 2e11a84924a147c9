"""Reads values of decoded JSON with their types checked. Every ValidationError (400) names the client's own field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.protocol.wire import nested_too_deeply

Json = dict[str, Any]

_decode = msgspec.json.Decoder(Json).decode


def decoded(body: bytes) -> Json:
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        if "Expected `object`" in str(error):
            raise ValidationError("The request body has to be a JSON object", code="invalid_json") from None
        raise ValidationError("The request body holds a number that is out of range") from None
    except RecursionError:
        raise nested_too_deeply() from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ValidationError("The request body is not valid JSON", code="invalid_json") from None


def invalid(field: str, problem: str) -> ValidationError:
    return ValidationError(f"{field}: {problem}")


def missing(field: str) -> ValidationError:
    return ValidationError(f"{field}: this field is required", code="missing_field")


def field_of(place: str, name: str) -> str:
    """The path of a field of the object at `place`, which is empty for the request itself."""
    return f"{place}.{name}" if place else name


def as_object(value: Any, place: str) -> Json:
    if not isinstance(value, dict):
        raise invalid(place, "expected an object")
    return value


def required_text(holder: Mapping[str, Any], name: str, place: str = "") -> str:
    value = holder.get(name)
    if value is None:
        raise missing(field_of(place, name))
    if not isinstance(value, str):
        raise invalid(field_of(place, name), "expected a string")
    return value


def required_name(holder: Mapping[str, Any], name: str, place: str = "") -> str:
    """Returns a required text that is not empty."""
    value = required_text(holder, name, place)
    if not value:
        raise invalid(field_of(place, name), "expected a string that is not empty")
    return value


def required_object(holder: Mapping[str, Any], name: str, place: str = "") -> Json:
    value = holder.get(name)
    if value is None:
        raise missing(field_of(place, name))
    return as_object(value, field_of(place, name))


def optional_text(holder: Mapping[str, Any], name: str, place: str = "") -> str | None:
    value = holder.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid(field_of(place, name), "expected a string")
    return value


def optional_object(holder: Mapping[str, Any], name: str, place: str = "") -> Json | None:
    value = holder.get(name)
    return None if value is None else as_object(value, field_of(place, name))


def optional_list(holder: Mapping[str, Any], name: str, place: str = "") -> list[Any] | None:
    value = holder.get(name)
    if value is not None and not isinstance(value, list):
        raise invalid(field_of(place, name), "expected a list")
    return value


def optional_flag(holder: Mapping[str, Any], name: str, place: str = "") -> bool | None:
    value = holder.get(name)
    if value is not None and not isinstance(value, bool):
        raise invalid(field_of(place, name), "expected true or false")
    return value


def optional_integer(
    holder: Mapping[str, Any], name: str, place: str = "", *, minimum: int, maximum: int | None = None
) -> int | None:
    value = holder.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid(field_of(place, name), "expected an integer")
    if value < minimum or (maximum is not None and value > maximum):
        bounds = f"{minimum} or more" if maximum is None else f"an integer from {minimum} to {maximum}"
        raise invalid(field_of(place, name), f"expected {bounds}")
    return value


def optional_share(holder: Mapping[str, Any], name: str) -> float | None:
    """Returns a number from 0 to 1 of the request."""
    value = holder.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise invalid(name, "expected a number from 0 to 1")
    return value
