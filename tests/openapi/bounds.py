"""The bounds that the OpenAPI document promises for parameters and bodies: ranges, lengths, choices and formats.

`bounds.txt` has them as they were promised to clients, a line for each operation. The tests of this folder send what is
beyond each bound of the document, so that a bound that is dropped from the product, and with it from the document, is
found by that file alone. Read the difference before it is committed anew:

    .venv/bin/python manage.py shell -v 0 -c "from tests.openapi.bounds import store; store()"
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.openapi.routes import Operation, channels_paths, operations
from tests.openapi.schemas import Schema, example, resolved

STORED = Path(__file__).parent / "bounds.txt"
_LIMITS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)
# The database's own range: no version has a number beyond it, so that the list of these is empty.
UNHELD = "version_number"
_FORMATS = {"uuid": "7", "date-time": "2026-02-30"}


def beyond(schema: Schema) -> Iterator[Any]:
    """Yields values of a type that the schema admits, each just beyond one of its bounds."""
    parts = parts_of(schema)
    if len([part for part in parts if part.get("type") != "null"]) == 1:
        for part in parts:
            yield from _beyond(part)


def _beyond(part: Schema) -> Iterator[Any]:
    if "enum" in part:
        yield "none-at-all" if isinstance(part["enum"][0], str) else 987_654_321
    elif part.get("format") in _FORMATS:
        yield _FORMATS[part["format"]]
    elif part.get("type") == "string":
        yield from ["x" * (part["maxLength"] + 1)] if "maxLength" in part else ()
        yield from ["x" * (part["minLength"] - 1)] if part.get("minLength") else ()
    elif part.get("type") in ("integer", "number"):
        yield from (part[name] + step for name, step in (("minimum", -1), ("maximum", 1)) if name in part)
        yield from (part[name] for name in ("exclusiveMinimum", "exclusiveMaximum") if name in part)
    elif part.get("type") == "array":
        for name, step in (("minItems", -1), ("maxItems", 1)):
            if part.get(name):
                yield [example(part["items"], {})] * (part[name] + step)


def parts_of(schema: Schema) -> list[Schema]:
    schema = resolved(schema)
    return [resolved(item) for choice in ("anyOf", "oneOf") for item in schema.get(choice, ())] or [schema]


def lines() -> list[str]:
    """Returns `operation field bounds, field bounds …` for every operation of Django that has bounds."""
    managed = [one for one in operations() if one.path not in channels_paths()]
    return sorted(f"{one.id} {', '.join(found)}" for one in managed if (found := list(_of(one))))


def _of(operation: Operation) -> Iterator[str]:
    for item in operation.described.get("parameters", ()):
        if item["in"] == "query" and item["name"] not in ("project_id", UNHELD):
            yield from _in(item["schema"], item["name"])
    for content in operation.described.get("requestBody", {}).get("content", {}).values():
        yield from _in(content.get("schema", {}), "body")


def _in(schema: Schema, place: str) -> Iterator[str]:
    for part in parts_of(schema):
        limits = [f"{name}={part[name]}" for name in _LIMITS if name in part]
        chosen = ["choice"] if "enum" in part else []
        formats = [part["format"]] if part.get("format") in _FORMATS else []
        if found := limits + chosen + formats:
            yield f"{place} {' '.join(found)}"
        for name, field in part.get("properties", {}).items():
            if name != "project_id":
                yield from _in(field, f"{place}.{name}")
        if isinstance(part.get("items"), dict):
            yield from _in(part["items"], f"{place}[]")


def store() -> None:
    STORED.write_text("\n".join(lines()) + "\n")
