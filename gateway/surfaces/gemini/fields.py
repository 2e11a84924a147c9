"""Reads the objects of Gemini's JSON, which is that of protocol buffers: each field has two spellings, and one object
may stand for a list of one. Schemas may be in Google's older form, a subset of OpenAPI with the types in capitals
(https://ai.google.dev/api/caching#Schema)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.surfaces.checks import Json, as_object, field_of, invalid
from integrations.providers.google.field_names import camel


def message(value: Any, place: str) -> Json:
    return camelled(as_object(value, place))


def camelled(holder: Json) -> Json:
    for name in holder:
        if "_" in name:
            return {camel(name.lstrip("_")): value for name, value in holder.items()}
    return holder


def optional_message(holder: Json, name: str, place: str = "") -> Json | None:
    value = holder.get(name)
    return None if value is None else message(value, field_of(place, name))


def repeated(holder: Json, name: str, place: str = "") -> list[Any]:
    value = holder.get(name)
    if isinstance(value, list):
        return value
    if value is None:
        return []
    if isinstance(value, dict):
        return [value]
    raise invalid(field_of(place, name), "expected a list of objects")


def optional_whole_number(holder: Json, name: str, place: str, *, minimum: int, maximum: int) -> int | None:
    """Google writes 64-bit integers as texts, and accepts a float without a fraction."""
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


# The gateway goes no deeper into a schema than Google does.
_MAX_DEPTH = 64
# OpenAPI has these words, and JSON Schema has none in their place that a vendor would act on.
_GOOGLES = frozenset({"nullable", "propertyOrdering", "example"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})


def json_schema(schema: Any, depth: int = 0) -> Any:
    """Returns the schema as a JSON schema; one that is a JSON schema already means the same afterwards."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return schema
    given = camelled(dict(schema))
    made: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _GOOGLES:
            made[name] = _value(name, value, depth)
    return _nullable(made) if given.get("nullable") is True else made


def _value(name: str, value: Any, depth: int) -> Any:
    if name == "type":
        return _type(value)
    if name in ("properties", "$defs", "defs") and isinstance(value, Mapping):
        return {key: json_schema(one, depth + 1) for key, one in value.items()}
    if name in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
        return [json_schema(one, depth + 1) for one in value]
    if name in ("items", "additionalProperties", "not"):
        return json_schema(value, depth + 1)
    if name in _COUNTS and isinstance(value, str) and value.isdecimal():
        return int(value)  # The JSON of protocol buffers writes integers of 64 bits as texts.
    return value


def _type(value: Any) -> Any:
    if isinstance(value, list):
        return [_type(one) for one in value]
    return value.lower() if isinstance(value, str) else value


def _nullable(made: dict[str, Any]) -> dict[str, Any]:
    kind = made.get("type")
    if isinstance(kind, str):
        made["type"] = [kind, "null"]
        if isinstance(made.get("enum"), list):
            made["enum"] = [*made["enum"], None]
    elif isinstance(made.get("anyOf"), list):
        made["anyOf"] = [*made["anyOf"], {"type": "null"}]
    return made
