"""Converts JSON schemas to the form that constrained answers and strict tools accept.

Objects must be closed, and bounds of numbers, strings and lists are not supported
(https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations). As in the vendor's
SDKs, unsupported bounds are written into the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_BOUNDS = (
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "uniqueItems",
)
# The formats of strings that Anthropic accepts are listed at
# https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid", "text"}
)
_SCHEMA_LISTS = ("anyOf", "allOf", "prefixItems")
_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions")

Json = dict[str, Any]


def accepted_schema(schema: Mapping[str, Any]) -> Json:
    """Closes open objects, replaces `oneOf` by `anyOf`, and moves bounds to descriptions.

    A schema without these is returned unchanged; the vendor reports the error of an invalid one.
    """
    made: Json = {}
    unknown: Json = {}
    for name, value in schema.items():
        if _is_unknown(name, value):
            unknown[name] = value
        elif name == "oneOf" and "anyOf" not in schema:
            made["anyOf"] = _all(value)
        elif name in _SCHEMA_LISTS:
            made[name] = _all(value)
        elif name in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            made[name] = {key: _each(item) for key, item in value.items()}
        elif name == "items":
            made[name] = _each(value)
        else:
            made[name] = value
    if _is_object(schema) and "additionalProperties" not in made:
        made["additionalProperties"] = False
    if unknown:
        made["description"] = _described(made.get("description"), unknown)
    return made


def _is_unknown(name: str, value: Any) -> bool:
    if name == "minItems":
        return value not in (0, 1)
    return name in _BOUNDS or (name == "format" and isinstance(value, str) and value not in _FORMATS)


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return (
        kind == "object" or (isinstance(kind, list) and "object" in kind) or (kind is None and "properties" in schema)
    )


def _each(value: Any) -> Any:
    return accepted_schema(value) if isinstance(value, Mapping) else value


def _all(values: Any) -> Any:
    return [_each(value) for value in values] if isinstance(values, list) else values


def _described(description: Any, unknown: Json) -> str:
    keywords = ", ".join(f"{name}: {msgspec.json.encode(value).decode()}" for name, value in unknown.items())
    return f"{description}\n\n{{{keywords}}}" if isinstance(description, str) and description else f"{{{keywords}}}"
