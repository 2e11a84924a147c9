"""Tests the values and texts that the sandbox makes to satisfy a schema or a pattern."""

from __future__ import annotations

import re
from typing import Any

import pytest

from integrations.sandbox.patterns import matching_text
from integrations.sandbox.schemas import sample
from tests.tables.cases import tabled


@tabled
def test_sample__keyword__is_satisfied(schema: dict[str, Any], expected: object) -> None:
    assert sample(schema) == expected


def test_sample__optional_left_out__only_what_is_required() -> None:
    schema = {"properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a"]}

    assert sample(schema, optional=False) == {"a": 1}
    assert sample(schema) == {"a": 1, "b": 2}


def test_sample__recursive_schema__ends() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["next"],
    }

    value = sample(node)
    while value is not None:
        assert set(value) == {"next"}
        value = value["next"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"again": {"$ref": "#"}}, "required": ["again"]},
        {"$ref": "#/$defs/absent"},
    ],
)
def test_sample__impossible_schema__is_a_value_error(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="schema"):
        sample(schema)


@pytest.mark.parametrize(
    "pattern",
    [r"^[A-Z]{2}-[0-9]{6}$", r"^\d{4}-\d{2}-\d{2}$", r"(foo|bar)+", r"^\w+@\w+\.com$", r"[^a]{2,}", r"x?y*z", r"^$"],
)
def test_matching_text__simple_pattern__matches(pattern: str) -> None:
    text = matching_text(pattern)

    assert text is not None
    assert re.search(pattern, text)


@pytest.mark.parametrize("pattern", [r"(?=.*\d)a", r"(", r"(a)\1", r"[z-a]"])
def test_matching_text__beyond_the_generator__is_none_or_a_match(pattern: str) -> None:
    text = matching_text(pattern)

    assert text is None or re.search(pattern, text)
