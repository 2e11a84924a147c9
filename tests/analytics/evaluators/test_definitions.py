"""The definitions of evaluators: what is taken, what is refused with the field's name, and how they are stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.evaluators.definitions import KINDS, read_definition, stored_form
from core.errors import ValidationError

GOOD_BAD = [{"name": "good", "meaning": "It is so.", "score": 1}, {"name": "bad", "meaning": "It is not.", "score": 0}]
CRITERION = {"name": "grounded", "meaning": "Every claim stands in the conversation.", "labels": GOOD_BAD}

EXAMPLES: dict[str, dict[str, Any]] = {
    "json_schema": {"schema": {"type": "object", "required": ["name"]}},
    "contains": {"value": "Berlin", "negated": True},
    "regex": {"pattern": r"\d{4}-\d{2}-\d{2}"},
    "equals": {"ignore_case": True},
    "numeric_within": {"relative": 0.01},
    "tool_call": {"name": "get_weather", "arguments": "equal"},
    "length": {"unit": "words", "maximum": 120},
    "language": {"language": "de"},
    "refusal": {"phrases": ["I would rather not"]},
    "similarity": {"model": "openai/text-embedding-3-small"},
    "judge": {"criteria": [CRITERION]},
    "pairwise": {"question": "Which answer is more helpful?"},
    "user_feedback": {},
}


def test_kinds__each__has_an_example() -> None:
    assert set(EXAMPLES) == set(KINDS)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_definition__stored_and_read__is_the_same(kind: str) -> None:
    definition = read_definition(kind, EXAMPLES[kind])

    assert read_definition(kind, stored_form(definition)) == definition
    assert definition.kind == kind


@pytest.mark.parametrize(
    ("kind", "fields", "named"),
    [
        ("unheard_of", {}, "kind"),
        ("equals", {"kind": "contains"}, "definition.kind"),
        ("equals", {"unheard_of": 1}, "definition"),
        ("contains", {"value": ""}, "definition.value"),
        ("contains", {"value": 5}, "definition.value"),
        ("regex", {}, "definition"),
        ("regex", {"pattern": "(a"}, "definition.pattern"),
        ("regex", {"pattern": r"(a)\1"}, "definition.pattern"),
        ("regex", {"pattern": "((a{1,1000}){1,1000}){1,1000}"}, "definition.pattern"),
        ("json_schema", {"schema": {"type": "unheard_of"}}, "definition.schema.type"),
        ("json_schema", {"schema": {"properties": {"a": {"type": 5}}}}, "definition.schema.properties.a.type"),
        ("json_schema", {"schema": {"$ref": "https://schemas.invalid/a"}}, "definition.schema"),
        ("json_schema", {"schema": {"pattern": "("}}, "definition.schema.pattern"),
        ("numeric_within", {"absolute": -1}, "definition.absolute"),
        ("tool_call", {"arguments": "alike"}, "definition.arguments"),
        ("length", {}, "definition.minimum"),
        ("length", {"minimum": 5, "maximum": 4}, "definition.minimum"),
        ("length", {"minimum": True}, "definition.minimum"),
        ("language", {"language": "German"}, "definition.language"),
        ("similarity", {}, "definition"),
        ("judge", {"criteria": []}, "definition.criteria"),
        ("judge", {"criteria": [CRITERION] * 6}, "definition.criteria"),
        ("judge", {"criteria": [CRITERION, CRITERION]}, "definition.criteria"),
        ("judge", {"criteria": [{**CRITERION, "name": "Not a name"}]}, "definition.criteria.0.name"),
        ("judge", {"criteria": [{**CRITERION, "labels": []}]}, "definition.criteria.0.labels"),
        ("judge", {"criteria": [{**CRITERION, "labels": GOOD_BAD[:1]}]}, "definition.criteria.0.labels"),
        ("judge", {"criteria": [{**CRITERION, "labels": [GOOD_BAD[0]] * 2}]}, "definition.criteria.0.labels"),
        (
            "judge",
            {"criteria": [CRITERION, {**CRITERION, "name": "b", "labels": [GOOD_BAD[0], {**GOOD_BAD[1], "score": 2}]}]},
            "definition.criteria.1.labels.1.score",
        ),
        (
            "judge",
            {"criteria": [{**CRITERION, "labels": [GOOD_BAD[0], {**GOOD_BAD[1], "score": 1}]}]},
            "definition.criteria.0.labels",
        ),
        ("pairwise", {"question": ""}, "definition.question"),
        ("contains", {"value": "x" * 10_001}, "definition.value"),
        ("json_schema", {"schema": {"enum": ["x" * 100_000]}}, "definition"),
    ],
)
def test_definition__bad_fields__are_named(kind: str, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError) as raised:
        read_definition(kind, fields)

    assert list(raised.value.details or ()) == [named]


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=10), values, max_size=4),
    max_leaves=12,
)


@given(
    kind=st.sampled_from(sorted(EXAMPLES)),
    fields=st.dictionaries(
        st.sampled_from(["schema", "value", "pattern", "criteria", "labels", "minimum", "model", "x"]), json_values
    ),
)
def test_definition__any_json__is_taken_or_refused(kind: str, fields: dict[str, Any]) -> None:
    try:
        definition = read_definition(kind, fields)
    except ValidationError as error:
        assert error.message and all(name.startswith(("definition", "kind")) for name in error.details or ())
    else:
        assert read_definition(kind, stored_form(definition)) == definition
