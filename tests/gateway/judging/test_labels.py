"""Rubrics with labels, and comparisons of two answers: what the judge is asked, and what is read of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analytics.evaluators.definitions import Criterion, Label
from gateway.judging.pairwise import Preference, agreed, comparison_request, read_preference
from gateway.judging.rubric import UnreadableGradesError, judge_request, read_grades
from tests.tables.cases import tabled

GROUNDED = Criterion(
    "grounded",
    "Every claim stands in the conversation.",
    [Label("yes", "All do.", 1.0), Label("No", "One is not.", 0.0)],
)
MESSAGES = [{"role": "user", "content": "When does it leave?"}]
ANSWER = {"role": "assistant", "content": "At seven."}


def asked(body: bytes) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Returns the instructions, the question, and the schema of the answer."""
    sent = json.loads(body)
    system, user = sent["messages"]
    return system["content"], json.loads(user["content"]), sent["response_format"]["json_schema"]["schema"]


def test_judge__labels__asks_for_a_reason_and_then_a_label() -> None:
    instructions, question, schema = asked(judge_request("judge", MESSAGES, ANSWER, [GROUNDED], expected={"at": 7}))

    assert '"yes": All do.' in instructions and "0 (worst)" not in instructions
    assert question["expected"] == '{"at": 7}'
    grade = schema["properties"]["grounded"]
    assert list(grade["properties"]) == ["reason", "label"]
    assert grade["properties"]["label"]["enum"] == ["yes", "No"]


def test_judge__no_expected_answer__speaks_of_none() -> None:
    instructions, question, _ = asked(judge_request("judge", MESSAGES, ANSWER, [GROUNDED]))

    assert "expected" not in instructions and "expected" not in question


@pytest.mark.parametrize(("given", "label", "score"), [("yes", "yes", 1.0), (" NO ", "No", 0.0)])
def test_grades__a_known_label__has_its_score(given: str, label: str, score: float) -> None:
    grades = read_grades(json.dumps({"grounded": {"reason": "So.", "label": given}}), [GROUNDED])

    assert (grades["grounded"].label, grades["grounded"].score) == (label, score)


@tabled
def test_grades__anything_else__is_unreadable(content: Any) -> None:
    with pytest.raises(UnreadableGradesError):
        read_grades(content, [GROUNDED])


def test_comparison__shows_both_answers_in_the_given_order() -> None:
    other = {"role": "assistant", "content": "At eight."}
    instructions, question, schema = asked(comparison_request("judge", "Which is right?", MESSAGES, ANSWER, other))

    assert "Which is right?" in instructions
    assert (question["first"], question["second"]) == ({"content": "At seven."}, {"content": "At eight."})
    assert list(schema["properties"]) == ["reason", "better"]


def test_preference__anything_but_the_three__is_unreadable() -> None:
    assert read_preference('{"reason": "So.", "better": "second"}') == (Preference.SECOND, "So.")
    for content in ('{"better": "A"}', "first", None):
        with pytest.raises(UnreadableGradesError):
            read_preference(content)


@tabled
def test_agreed__both_orders__or_alike(one: str, turned: str, expected: str) -> None:
    assert agreed(Preference(one), Preference(turned)) == expected
