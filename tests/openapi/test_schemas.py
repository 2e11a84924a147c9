from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from core.openapi.views import document
from tests.tables.cases import tabled

Schema = dict[str, Any]
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


def places(value: Any, path: str = "#") -> Iterator[tuple[str, Schema]]:
    if isinstance(value, dict):
        yield path, value
        for name, inner in value.items():
            yield from places(inner, f"{path}/{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, f"{path}/{index}")


def fits(value: Any, schema: Schema) -> bool:
    whole = {**schema, "components": document()["components"]}
    return Draft202012Validator(whole, validate_formats=True).is_valid(value)


def may_overlap(one: Schema, other: Schema) -> bool:
    """Returns False only if types, lengths, constants or required fields exclude it. A format excludes nothing: for
    most validators it is a comment."""
    one, other = _resolved(one), _resolved(other)
    if "const" in one or "enum" in one:
        return any(fits(value, other) for value in _constants(one))
    if "const" in other or "enum" in other:
        return may_overlap(other, one)
    shared = _types(one) & _types(other)
    return any(
        not _differ_in_length(one, other, name) and not (name == "object" and _differ_in_a_field(one, other))
        for name in shared
    )


def _resolved(schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _constants(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema["enum"])


def _types(schema: Schema) -> frozenset[str]:
    named = schema.get("type", _TYPES)
    types = frozenset({named} if isinstance(named, str) else named)
    return types | {"integer"} if "number" in types else types


def _differ_in_length(one: Schema, other: Schema, name: str) -> bool:
    what = _LENGTHS.get(name)
    return what is not None and any(
        first.get(f"max{what}", math.inf) < second.get(f"min{what}", 0)
        for first, second in ((one, other), (other, one))
    )


def _differ_in_a_field(one: Schema, other: Schema) -> bool:
    fields = set(one.get("required", ())) & set(other.get("required", ()))
    return any(
        not may_overlap(one.get("properties", {}).get(name, {}), other.get("properties", {}).get(name, {}))
        for name in fields
    )


def test_document__independent_validator__finds_nothing() -> None:
    problems = OpenAPIV31SpecValidator(json.loads(json.dumps(document()))).iter_errors()

    assert [f"{list(problem.path)}: {problem.message}" for problem in problems] == []


def test_schemas__every_default__fits_its_own_schema() -> None:
    defaults = [
        (path, schema) for path, schema in places(document()) if "default" in schema and not _names_a_field(path)
    ]

    assert len(defaults) > 50
    assert [path for path, schema in defaults if not fits(schema["default"], schema)] == []


def test_schemas__one_of__no_value_fits_two_branches() -> None:
    overlaps = [
        f"{path}: {one} and {other}"
        for path, schema in places(document())
        for one, other in combinations(schema.get("oneOf", ()), 2)
        if may_overlap(one, other)
    ]

    assert overlaps == []


def _names_a_field(path: str) -> bool:
    """An object of fields by name may have one called `default`."""
    return path.endswith("/properties")


@tabled
def test_overlap__of_two_schemas__as_their_values_have_it(one: Schema, other: Schema, expected: bool) -> None:
    assert may_overlap(one, other) is expected
    assert may_overlap(other, one) is expected
