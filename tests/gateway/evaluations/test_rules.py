"""Scores of answers by the kinds of evaluators that ask no model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.evaluators.definitions import read_definition
from gateway.evaluations.rules import Answer, score_by_rule

GERMAN = "Der Zug nach Berlin fährt morgen früh um sieben Uhr von Gleis drei ab."
ENGLISH = "The train to Berlin leaves tomorrow morning at seven from platform three."


def said(text: Any, **others: Any) -> Answer:
    return Answer({"role": "assistant", "content": text}, **others)


def called(name: str, arguments: str, **others: Any) -> Answer:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return Answer({"role": "assistant", "content": None, "tool_calls": [call]}, **others)


WEATHER = {"name": "get_weather", "arguments": {"city": "Berlin"}}


@pytest.mark.parametrize(
    ("kind", "fields", "answer", "expected"),
    [
        ("contains", {"value": "berlin"}, said(ENGLISH), 1),
        ("contains", {"value": "berlin", "ignore_case": False}, said(ENGLISH), 0),
        ("contains", {"value": "berlin", "negated": True}, said(ENGLISH), 0),
        ("contains", {}, said(ENGLISH, expected="platform three"), 1),
        ("contains", {}, said(ENGLISH), None),
        ("contains", {"value": "STRASSE"}, said("Hauptstraße"), 1),
        ("contains", {"value": "b"}, said([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), 1),
        ("contains", {"value": "b"}, said(None), 0),
        ("regex", {"pattern": r"\d{4}-\d{2}"}, said("on 2026-11-27"), 1),
        ("regex", {"pattern": r"^ok$", "ignore_case": True}, said("OK"), 1),
        ("regex", {"pattern": "x", "negated": True}, said("x"), 0),
        ("equals", {}, said(" yes\n", expected="yes"), 1),
        ("equals", {}, said("Yes", expected="yes"), 0),
        ("equals", {"ignore_case": True}, said("Yes", expected="yes"), 1),
        ("equals", {}, said('{"b": 1.0, "a": [true]}', expected={"a": [True], "b": 1}), 1),
        ("equals", {}, said('{"a": [1]}', expected={"a": [True]}), 0),
        ("equals", {}, said("not JSON", expected={"a": 1}), 0),
        ("equals", {}, said("[" * 100_000, expected={"a": 1}), 0),
        ("equals", {}, said("yes"), None),
        ("numeric_within", {}, said("12 of 30, so 42", expected=42), 1),
        ("numeric_within", {}, said("It costs $1,234.50.", expected="1234.5"), 1),
        ("numeric_within", {"absolute": 0.1}, said("3.14", expected=3.2), 1),
        ("numeric_within", {"relative": 0.01}, said("-102", expected=-100), 0),
        ("numeric_within", {"relative": 0.02}, said("-102", expected=-100), 1),
        ("numeric_within", {}, said("1e3", expected=1000), 1),
        ("numeric_within", {}, said("none", expected=1000), 0),
        ("numeric_within", {}, said("1", expected="none"), None),
        ("numeric_within", {}, said("1", expected=True), None),
        ("tool_call", {}, called("get_weather", '{"city": "Berlin", "unit": "C"}', expected=WEATHER), 1),
        (
            "tool_call",
            {"arguments": "equal"},
            called("get_weather", '{"city": "Berlin", "unit": "C"}', expected=WEATHER),
            0,
        ),
        ("tool_call", {"arguments": "ignored"}, called("get_weather", "{}", expected=WEATHER), 1),
        ("tool_call", {"name": "other"}, called("get_weather", "{}"), 0),
        ("tool_call", {"name": "get_weather"}, called("get_weather", "{}"), 1),
        ("tool_call", {}, called("get_weather", '{"city": "Bonn"}', expected=WEATHER), 0),
        ("tool_call", {}, called("get_weather", "torn {", expected=WEATHER), 0),
        ("tool_call", {}, said("no call", expected=WEATHER), 0),
        ("tool_call", {}, called("get_weather", "{}"), None),
        ("length", {"maximum": 3}, said("one two three"), 1),
        ("length", {"maximum": 2}, said("one two three"), 0),
        ("length", {"minimum": 4}, said("one two three"), 0),
        ("length", {"unit": "characters", "minimum": 3, "maximum": 3}, said("äöü"), 1),
        ("length", {"unit": "tokens", "maximum": 5}, said("x", completion_tokens=6), 0),
        ("language", {"language": "de"}, said(GERMAN), 1),
        ("language", {"language": "de"}, said(ENGLISH), 0),
        ("language", {}, said(GERMAN, messages=[{"role": "user", "content": GERMAN}]), 1),
        ("language", {}, said(ENGLISH, messages=[{"role": "user", "content": GERMAN}]), 0),
        ("language", {}, said(GERMAN), None),
        ("language", {"language": "de"}, said("4711"), None),
        ("refusal", {}, said("I\u2019m sorry, but I can\u2019t help with that."), 0),
        ("refusal", {}, said("Of course."), 1),
        ("refusal", {"expected": True}, said("I cannot help with that."), 1),
        ("refusal", {"phrases": ["Nope"]}, said("nope, sorry"), 0),
        ("refusal", {}, Answer({"content": None, "refusal": "No."}), 0),
        ("refusal", {}, said("", finish_reason="content_filter"), 0),
    ],
)
def test_score__by_kind(kind: str, fields: dict[str, Any], answer: Answer, expected: float | None) -> None:
    score = score_by_rule(read_definition(kind, fields), answer)

    assert score.score == expected
    assert expected is not None or score.reason in ("no_expected", "language_unknown")


@pytest.mark.parametrize("kind", ["judge", "similarity"])
def test_score__kind_that_asks_a_model__is_no_rule(kind: str) -> None:
    labels = [{"name": "a", "meaning": "b", "score": 0}, {"name": "c", "meaning": "d", "score": 1}]
    fields: dict[str, dict[str, Any]] = {
        "judge": {"criteria": [{"name": "a", "meaning": "b", "labels": labels}]},
        "similarity": {"model": "openai/small"},
    }

    with pytest.raises(TypeError):
        score_by_rule(read_definition(kind, fields[kind]), said("x"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=8), values, max_size=3),
    max_leaves=8,
)
RULES: list[tuple[str, dict[str, Any]]] = [
    ("contains", {}),
    ("regex", {"pattern": "a|b"}),
    ("equals", {}),
    ("numeric_within", {"relative": 0.5}),
    ("tool_call", {}),
    ("length", {"maximum": 3}),
    ("language", {}),
    ("refusal", {}),
]


@given(
    rule=st.sampled_from(RULES),
    message=st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "refusal"]), json_values),
    messages=st.lists(json_values, max_size=3),
    expected=json_values,
)
def test_score__any_json__is_a_share_or_a_reason(
    rule: tuple[str, dict[str, Any]], message: dict[str, Any], messages: list[Any], expected: Any
) -> None:
    score = score_by_rule(read_definition(*rule), Answer(message, messages, expected))

    assert score.score in (0.0, 1.0) or (score.score is None and score.reason)
