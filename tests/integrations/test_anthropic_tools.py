"""Tests tools, their choice, and answers that follow a schema in requests to the Messages API."""

from __future__ import annotations

from typing import Any

from anthropic import transform_schema
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.anthropic.schema import accepted_schema

SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "format": "date-time"},
            {"type": "string", "format": "password"},
            {"type": "integer", "minimum": 3},
            {"type": "string", "enum": ["a", "b"]},
            {"type": "number", "multipleOf": 2, "description": "even"},
            {"type": "null"},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item, "minItems": 2}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"type": "object", "properties": {"a": a}, "required": ["a"]}, inner),
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_schema__accepted__as_far_as_the_vendors_sdk_makes_it(schema: dict[str, Any]) -> None:
    """The schemas are compared without descriptions, whose wording is the SDK's own, and without the type beside an
    enum, which is allowed."""
    accepted = accepted_schema(schema)
    assert bare(accepted) == bare(transform_schema(schema))
    assert accepted_schema(accepted) == accepted


def bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        gone = {"description"} | ({"type"} if "enum" in schema else set())
        return {name: bare(value) for name, value in schema.items() if name not in gone}
    return [bare(item) for item in schema] if isinstance(schema, list) else schema
