"""The JSON schema of a tool's arguments, in the plain form that every provider takes."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


@cache
def _components(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    schema = msgspec.json.schema(arguments)
    found: dict[str, Any] = schema["$defs"][arguments.__name__]
    return found


def schema_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """Of an object without references: nothing is nested, and null stands for leaving a field out."""
    found = _components(arguments)
    return {
        "type": "object",
        "properties": {name: _plain(field) for name, field in found["properties"].items()},
        "required": list(found["required"]),
        "additionalProperties": False,
    }


def choices_of(arguments: type[msgspec.Struct], field: str) -> list[Any]:
    """The values a field is restricted to; empty when it is not."""
    found: list[Any] = schema_of(arguments)["properties"].get(field, {}).get("enum", [])
    return found


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    options = [option for option in field.get("anyOf", []) if option.get("type") != "null"]
    chosen = dict(options[0]) if len(options) == 1 else dict(field)
    if "enum" in chosen and "type" not in chosen:
        chosen["type"] = _TYPES[type(chosen["enum"][0])]
    # An empty default says no more than that the field can be left out.
    default = field.get("default")
    if default not in (None, "", []):
        chosen["default"] = default
    else:
        chosen.pop("default", None)
    return chosen
