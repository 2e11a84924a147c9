from __future__ import annotations

from typing import Any

import msgspec

_REF = "#/components/schemas/{name}"
# The OpenAPI generator also needs shapes that only hooks name.
_shapes: dict[Any, None] = {}


def reference(shape: Any) -> dict[str, Any]:
    _shapes[shape] = None
    schemas, _ = msgspec.json.schema_components([shape], ref_template=_REF)
    return dict(_with_money(schemas[0]))


def _with_money(schema: Any) -> Any:
    if isinstance(schema, dict):
        if schema.get("format") == "decimal":
            return {"type": "number"}
        return {name: _with_money(value) for name, value in schema.items()}
    return [_with_money(one) for one in schema] if isinstance(schema, list) else schema


def any_of(*shapes: Any) -> dict[str, Any]:
    schemas = [reference(shape) for shape in shapes]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def page_of(results: dict[str, Any], **more: Any) -> dict[str, Any]:
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
    components = _with_money(msgspec.json.schema_components(list(_shapes), ref_template=_REF)[1])
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    doubled = sorted(set(schemas) & set(components))
    if doubled:
        raise ValueError(f"Two components have the same name: {', '.join(doubled)}")
    schemas.update(components)
    return result
