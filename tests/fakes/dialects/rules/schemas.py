from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "$defs", "definitions")


def subschemas(schema: Any, context: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if not isinstance(schema, Mapping):
        return
    yield context, schema
    for name in _MAPS:
        held = schema.get(name)
        for key, inner in held.items() if isinstance(held, Mapping) else ():
            yield from subschemas(inner, (*context, name, key))
    for name in _LISTS:
        held = schema.get(name)
        for index, inner in enumerate(held if isinstance(held, list) else ()):
            yield from subschemas(inner, (*context, name, str(index)))
    yield from subschemas(schema.get("items"), (*context, "items"))


def is_of(schema: Mapping[str, Any], kind: str) -> bool:
    declared = schema.get("type")
    return declared == kind or (isinstance(declared, list) and kind in declared)


def first_open(schema: Any) -> dict[str, Any] | None:
    """Returns where and why OpenAI's strict mode refuses the schema, or None: objects must be closed and require all of
    their properties."""
    for context, inner in subschemas(schema):
        if not is_of(inner, "object"):
            continue
        properties = inner.get("properties") or {}
        if inner.get("additionalProperties") is not False:
            return {"context": context, "problem": "'additionalProperties' is required to be supplied and to be false"}
        missing = [name for name in properties if name not in (inner.get("required") or ())]
        if missing:
            problem = "'required' is required to be supplied and to be an array including every key in properties"
            return {"context": context, "problem": f"{problem}. Missing '{missing[0]}'"}
    return None


def first_unfinished(schema: Any) -> dict[str, Any] | None:
    """Returns where OpenAI refuses a function's parameters in any mode: an object without properties, an array without
    items."""
    for context, inner in subschemas(schema):
        if not context and inner.get("type") == "object" and "properties" not in inner:
            return {"context": context, "problem": "object schema missing properties"}
        if inner.get("type") == "array" and "items" not in inner:
            return {"context": context, "problem": "array schema missing items"}
    return None
