"""Google's form is nearly all of JSON Schema with a few keywords changed.
https://ai.google.dev/api/generate-content#FIELDS.response_json_schema: beside `$ref` only other `$` keywords may stand,
and a constant is an enumeration of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The values of `properties` and similar keywords map names to schemas, and the names are no keywords.
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
# The values of `enum` and similar keywords are data and no schemas.
_DATA = frozenset({"enum", "default", "example", "examples", "required", "const"})
# Google takes no schema that is this deep, so deeper levels are passed on unchanged.
_MAX_DEPTH = 64
_UNKNOWN = frozenset({"$schema", "$comment"})


def is_own(schema: Mapping[str, Any]) -> bool:
    """Whether it is in Google's older subset of OpenAPI, with types in capitals and its own fields (`parameters`,
    `responseSchema`)."""
    kind = schema.get("type")
    return isinstance(kind, str) and kind.isupper()


def google_schema(schema: Any, depth: int = 0) -> Any:
    """Returns the same object if nothing has to change."""
    if depth > _MAX_DEPTH:
        return schema
    if isinstance(schema, list):
        items = [google_schema(item, depth + 1) for item in schema]
        return items if any(new is not old for new, old in zip(items, schema, strict=True)) else schema
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema and any(not name.startswith("$") for name in schema):
        schema = {name: value for name, value in schema.items() if name.startswith("$")}
    changed = {name: value for name, old in schema.items() if (value := _value(name, old, depth)) is not old}
    if changed:
        schema = {**schema, **changed}
    if not _UNKNOWN.isdisjoint(schema) or "const" in schema:
        schema = _reworded(schema)
    return schema


def _value(name: str, value: Any, depth: int) -> Any:
    if name in _DATA:
        return value
    if name in _NAMED_SCHEMAS and isinstance(value, Mapping):
        changed = {key: new for key, old in value.items() if (new := google_schema(old, depth + 1)) is not old}
        return {**value, **changed} if changed else value
    return google_schema(value, depth + 1)


def _reworded(schema: Mapping[str, Any]) -> dict[str, Any]:
    converted = {name: value for name, value in schema.items() if name not in _UNKNOWN and name != "const"}
    if "const" in schema:
        converted["enum"] = [schema["const"]]
        if "type" not in converted and (kind := _type_of(schema["const"])):
            converted["type"] = kind
    return converted


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return {str: "string", int: "integer", float: "number", type(None): "null"}.get(type(value), "")
