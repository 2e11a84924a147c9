from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from integrations.sandbox.patterns import matching_text

# Deeper than four levels only required properties are filled in, so that recursive schemas end.
_GENEROUS_DEPTH = 4
_MAX_DEPTH = 40

_FORMATS = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "time": "03:04:05Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


@dataclass(frozen=True, slots=True)
class _Place:
    root: Mapping[str, Any]
    name: str
    optional: bool
    depth: int = 0
    variant: int = 0

    def below(self, name: str, variant: int = 0) -> _Place:
        if self.depth >= _MAX_DEPTH:
            raise ValueError("the schema requires itself without end")
        return replace(self, name=name, variant=variant, depth=self.depth + 1)


def sample(schema: Any, *, name: str = "value", optional: bool = True) -> Any:
    """With `optional` it fills in optional properties too. Raises ValueError if no finite value exists or a reference
    leads nowhere."""
    root = schema if isinstance(schema, Mapping) else {}
    return _sample(schema, _Place(root=root, name=name, optional=optional))


def _sample(schema: Any, place: _Place) -> Any:
    if not isinstance(schema, Mapping):
        return _text({}, place)
    if "$ref" in schema:
        return _sample(_resolve(schema["$ref"], place.root), place.below(place.name, place.variant))
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][place.variant % len(schema["enum"])]
    if "allOf" in schema:
        return _sample(_merged(schema, place.root), place)
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _first_possible(schema, key, place)
    return _by_type(schema, place)


def _by_type(schema: Mapping[str, Any], place: _Place) -> Any:
    match _type_of(schema):
        case "object":
            return _object(schema, place)
        case "array":
            return _array(schema, place)
        case "integer":
            return int(_number(schema, place, step=1))
        case "number":
            return _number(schema, place, step=schema.get("multipleOf", 0.5))
        case "boolean":
            return place.variant % 2 == 0
        case "null":
            return None
    return _text(schema, place)


def _type_of(schema: Mapping[str, Any]) -> str:
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((kind for kind in declared if kind != "null"), "null")
    if isinstance(declared, str):
        return declared
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            node = node[int(key)] if isinstance(node, list) else node[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"the schema refers to {reference}, which it does not define") from None
    return node


def _merged(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {"properties": {}, "required": []}
    parts = [part for part in schema["allOf"] if isinstance(part, Mapping)]
    for part in [*parts, {key: value for key, value in schema.items() if key != "allOf"}]:
        resolved = _resolve(part["$ref"], root) if "$ref" in part else part
        merged["properties"] |= resolved.get("properties", {})
        merged["required"] = [*merged["required"], *resolved.get("required", [])]
        merged |= {key: value for key, value in resolved.items() if key not in ("properties", "required")}
    if not merged["properties"]:
        del merged["properties"], merged["required"]
    return merged


def _first_possible(schema: Mapping[str, Any], key: str, place: _Place) -> Any:
    options = list(schema[key])
    nulls_last = sorted(options, key=lambda option: isinstance(option, Mapping) and option.get("type") == "null")
    rest = {name: value for name, value in schema.items() if name != key}
    for option in nulls_last if place.depth < _GENEROUS_DEPTH else reversed(nulls_last):
        combined = {**rest, **option} if isinstance(option, Mapping) and "$ref" not in option else option
        try:
            return _sample(combined, place.below(place.name, place.variant))
        except ValueError:
            continue
    raise ValueError("no alternative of the schema has a finite value")


def _object(schema: Mapping[str, Any], place: _Place) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = list(dict.fromkeys(schema.get("required") or []))
    generous = place.optional and place.depth < _GENEROUS_DEPTH
    names = [*required, *(name for name in properties if generous and name not in required)]
    result = {name: _sample(properties.get(name, True), place.below(name, place.variant)) for name in names}
    extra = schema.get("additionalProperties", True)
    for index in range(len(result), int(schema.get("minProperties", 0))):
        result[f"key_{index}"] = _sample(extra, place.below("value", index))
    return result


def _array(schema: Mapping[str, Any], place: _Place) -> list[Any]:
    leading = list(schema.get("prefixItems") or [])
    min_items = int(schema.get("minItems", 0))
    count = max(min_items, len(leading), 1 if place.depth < _GENEROUS_DEPTH else 0)
    count = max(min_items, min(count, int(schema.get("maxItems", count))))
    items = schema.get("items", True)
    return [
        _sample(leading[index] if index < len(leading) else items, place.below(place.name, index))
        for index in range(count)
    ]


def _number(schema: Mapping[str, Any], place: _Place, *, step: float) -> float:
    step = schema.get("multipleOf", step)
    low = schema.get("minimum")
    high = schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    below = schema.get("exclusiveMaximum")
    if low is not None or above is not None:
        start = math.ceil(max(bound for bound in (low, above) if bound is not None) / step) * step
        value = start + step if above is not None and start <= above else start
    elif high is not None or below is not None:
        end = math.floor(min(bound for bound in (high, below, 1) if bound is not None) / step) * step
        value = end - step if below is not None and end >= below else end
    else:
        value = math.ceil(1 / step) * step
    return float(value + place.variant * step)


def _text(schema: Mapping[str, Any], place: _Place) -> str:
    if pattern := schema.get("pattern"):
        found = matching_text(pattern)
        if found is not None:
            return found
    if (known := _FORMATS.get(str(schema.get("format")))) is not None:
        return known
    text = f"example {place.name}" + (f" {place.variant + 1}" if place.variant else "")
    min_length, max_length = int(schema.get("minLength", 0)), schema.get("maxLength")
    text = text.ljust(min_length, ".")
    return text if max_length is None else text[: int(max_length)]
