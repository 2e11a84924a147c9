"""Every call of the management API refuses unknown fields, values of another type and values beyond a bound, by name.

The document names the calls, their fields, and the types and bounds of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.openapi.views import document
from tests.openapi.bounds import beyond, parts_of
from tests.openapi.conftest import Populated
from tests.openapi.routes import channels_paths, operations
from tests.openapi.schemas import example, resolved

UNKNOWN = "no_such_field_at_all"
# Left out are calls that Django does not serve, and OTLP: they let unknown fields pass. `tests/agent` has
# the chat.
MANAGED = [
    (method, path)
    for path, method, described in operations()
    if "application/json" in described.get("requestBody", {}).get("content", {})
    and path not in channels_paths()
    and not path.startswith("/api/otlp/")
]
VALUES: dict[str, Any] = {
    "text": "x",
    "whole number": 5,
    "fraction": 1.5,
    "true": True,
    "list": [],
    "object": {},
    "number as text": "4",
    "null": None,
}
TAKEN_BY: dict[str, set[str]] = {
    "string": {"text", "number as text"},
    "integer": {"whole number"},
    "number": {"whole number", "fraction"},
    "boolean": {"true"},
    "array": {"list"},
    "object": {"object"},
    "null": {"null"},
}
# An item of a data set may also have null for what it leaves out, which the document does not say.
TAKES_NULL = "/api/llm/datasets/{dataset_id}/items"
Body = dict[str, Any]


def schema_of(method: str, path: str) -> Body:
    content = document()["paths"][path][method]["requestBody"]["content"]
    assert set(content) == {"application/json"}
    return resolved(content["application/json"]["schema"])


def types_of(schema: Body) -> set[str]:
    schema = resolved(schema)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            found = [types_of(item) for item in schema[choice]]
            return set().union(*found) if all(found) else set()
    named = schema.get("type", [])
    if not named and "enum" in schema:
        return {{int: "integer", str: "string"}[type(value)] for value in schema["enum"] if value is not None}
    return {named} if isinstance(named, str) else set(named)


def wrong_values(schema: Body, path: str = "") -> Iterator[tuple[str, Any]]:
    for part in parts_of(schema):
        for name, field in part.get("properties", {}).items():
            if field.get("readOnly"):
                continue
            for place, value in wrong_for(field):
                yield f"{name}{place}", {name: value}
        if "array" in types_of(part) and "items" in part:
            for place, value in wrong_for(part["items"]):
                yield f"0{place}", [value]


def wrong_for(field: Body) -> Iterator[tuple[str, Any]]:
    types = types_of(field)
    if not types:
        return
    taken = set().union(*(TAKEN_BY.get(name, set()) for name in types))
    if resolved(field).get("format") == "decimal":
        # Prices are decimal texts, and numbers are accepted too.
        taken |= {"whole number", "fraction"}
    for name in VALUES.keys() - taken:
        yield "", VALUES[name]
    for value in beyond(field):
        yield "", value
    for place, value in wrong_values(field):
        yield f".{place}", value


def objects_in(schema: Body) -> Iterator[tuple[str, Any]]:
    for part in parts_of(schema):
        if part.get("properties"):
            yield UNKNOWN, {UNKNOWN: 1}
        for name, field in part.get("properties", {}).items():
            for place, value in [] if field.get("readOnly") else objects_in(field):
                yield f"{name}.{place}", {name: value}
        for place, value in objects_in(part["items"]) if isinstance(part.get("items"), dict) else ():
            yield f"0.{place}", [value]


def together(bodies: list[tuple[str, Any]]) -> Iterator[tuple[list[tuple[str, Any]], Body]]:
    """Joins wrong values in few bodies, since an answer names every problem of a body.

    A wrong project is reported alone, before any other problem.
    """
    by_field: dict[str, list[tuple[str, Any]]] = {}
    for place, body in bodies:
        if place == "project_id":
            yield [(place, body)], body
            continue
        by_field.setdefault(next(iter(body)), []).append((place, body))
    for row in zip_longest(*by_field.values()):
        found = [item for item in row if item is not None]
        yield found, {name: value for _, body in found for name, value in body.items()}


def missed(caller: APIClient, populated: Populated, method: str, path: str, bodies: list[tuple[str, Any]]) -> list[str]:
    """Returns the places that the answer's `details` do not name. Most calls name every problem of a body; the others
    get one problem at a time, beside the fields that the call requires."""
    url, required = path.format(**populated.known), example(schema_of(method, path), populated.known)

    def unnamed(body: Any, parts: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        answer = caller.generic(method.upper(), url, data=json.dumps(body), content_type="application/json")
        details = answer.json().get("error", {}).get("details", {}) if answer.status_code == 400 else {}
        return [part for part in parts if not any(is_within(field, part[0]) for field in details)]

    found = [part for parts, body in together(bodies) for part in unnamed(body, parts)]
    return [f"{place} of {str(body)[:200]}" for place, body in found if unnamed({**required, **body}, [(place, body)])]


def is_within(field: str, place: str) -> bool:
    return field == place or field.startswith((f"{place}.", f"{place}["))


@pytest.mark.parametrize(("method", "path"), MANAGED)
def test_body__unknown_field__refused_by_name(caller: APIClient, populated: Populated, method: str, path: str) -> None:
    bodies = list(objects_in(schema_of(method, path)))

    assert bodies
    assert missed(caller, populated, method, path, bodies) == []


@pytest.mark.parametrize(("method", "path"), MANAGED)
def test_body__wrong_type_or_beyond_a_bound__refused_by_name(
    caller: APIClient, populated: Populated, method: str, path: str
) -> None:
    bodies = list(wrong_values(schema_of(method, path)))
    if path == TAKES_NULL:
        bodies = [(place, body) for place, body in bodies if "None" not in repr(body)]

    assert bodies
    assert missed(caller, populated, method, path, bodies) == []


@pytest.mark.parametrize(("method", "path"), MANAGED)
def test_body__that_is_no_object_or_lacks_a_field__refused(
    caller: APIClient, populated: Populated, method: str, path: str
) -> None:
    url, required = path.format(**populated.known), set(schema_of(method, path).get("required", ()))

    for body in ("[]", "7", '"text"', "null", *(["{}"] if required else [])):
        answer = caller.generic(method.upper(), url, data=body, content_type="application/json")
        assert answer.status_code == 400, body
    # A field of nobody's project is looked for first, and some calls name one missing field after the other.
    assert not required or required & set(answer.json()["error"]["details"])
