from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.openapi.views import document

Schema = dict[str, Any]

_TEXTS = {
    "uuid": "00000000-0000-4000-8000-000000000000",
    "date-time": "2030-01-01T00:00:00Z",
    "uri": "https://example.org",
}


def resolved(schema: Schema) -> Schema:
    while "$ref" in schema or len(schema.get("allOf", ())) == 1:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            schema = document()["components"]["schemas"][name]
        else:
            schema = schema["allOf"][0]
    return schema


def example(schema: Schema, known: Mapping[str, Any], name: str = "") -> Any:
    """Returns the smallest value that the schema admits: an object has its required fields, and fields named in `known`
    its values."""
    schema = resolved(schema)
    if name in known:
        return known[name]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return example(schema[choice][0], known)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    return _EXAMPLES[kind if isinstance(kind, str) else kind[0]](schema, known)


_EXAMPLES: dict[str, Any] = {
    "string": lambda schema, known: _TEXTS.get(schema.get("format", ""), "text"),
    "integer": lambda schema, known: schema.get("minimum", 1),
    "number": lambda schema, known: schema.get("minimum", 1),
    "boolean": lambda schema, known: True,
    "null": lambda schema, known: None,
    "array": lambda schema, known: [example(schema["items"], known)] * schema.get("minItems", 1),
    "object": lambda schema, known: {
        field: example(schema.get("properties", {}).get(field, {}), known, field)
        for field in schema.get("required", ())
    },
}
