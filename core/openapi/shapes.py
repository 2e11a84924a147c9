"""Typed dictionaries as schemas of answers without a serializer; their names become components of the document."""

from __future__ import annotations

from typing import Any

import msgspec

_REF = "#/components/schemas/{name}"
# The OpenAPI generator also needs shapes that only hooks name.
_shapes: dict[Any, None] = {}


def reference(shape: Any) -> dict[str, Any]:
    """Returns the schema of a typed dictionary, a struct, or any type made of them."""
    _shapes[shape] = None
    schemas, _ = msgspec.json.schema_components([shape], ref_template=_REF)
    return dict(schemas[0])


def any_of(*shapes: Any) -> dict[str, Any]:
    """Returns the schema of one of several shapes, of which a type can hold one typed dictionary at most."""
    schemas = [reference(shape) for shape in shapes]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def page_of(results: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Returns the envelope of a list around the schema of one result; `more` are further fields of the list."""
    link: dict[str, Any] = {"type": ["string", "null"], "format": "uri"}
    properties: dict[str, Any] = {
        "count": {"type": "integer", "minimum": 0, "description": "Of all pages."},
        "next": link,
        "previous": link,
        "results": {"type": "array", "items": results},
        **{name: reference(shape) for name, shape in more.items()},
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def add_shapes(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """The OpenAPI generator's hook that adds a component for every shape that was referred to."""
    components = msgspec.json.schema_components(list(_shapes), ref_template=_REF)[1]
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    doubled = sorted(set(schemas) & set(components))
    if doubled:
        raise ValueError(f"Two components have the same name: {', '.join(doubled)}")
    schemas.update(components)
    return result
