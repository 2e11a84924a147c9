from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


@cache
def _described(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    return msgspec.json.schema(arguments)


def schema_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    definitions = _described(arguments)["$defs"]
    return _object(definitions[arguments.__name__], definitions)


def choices_of(arguments: type[msgspec.Struct], field: str) -> list[Any]:
    found: list[Any] = schema_of(arguments)["properties"].get(field, {}).get("enum", [])
    return found


def _object(found: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _plain(field, definitions) for name, field in found["properties"].items()},
        "required": list(found["required"]),
        "additionalProperties": False,
    }


def _plain(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in field.items() if name not in ("anyOf", "$ref", "default", "title")}
    options = [option for option in field.get("anyOf", []) if option.get("type") != "null"]
    # Not every provider takes a field of two types: a text that may come as a number is described as a text.
    for option in [option for option in options if option.get("type") == "string"] or options:
        plain |= _plain(option, definitions)
    if "$ref" in field:
        found = definitions[field["$ref"].rpartition("/")[2]]
        plain = {**(_object if found.get("type") == "object" else _plain)(found, definitions), **plain}
    if "items" in field:
        plain["items"] = _plain(field["items"], definitions)
    if "enum" in plain:
        plain.setdefault("type", _TYPES[type(plain["enum"][0])])
    # An empty default only repeats that the field may be left out.
    if field.get("default") not in (None, "", []):
        plain["default"] = field["default"]
    return plain
