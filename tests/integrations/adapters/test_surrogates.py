"""Tests that lone surrogates, as some servers escape them, cost the character and not the answer."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.common.surrogates import with_whole_characters
from tests.fakes.dialects.story import Story
from tests.integrations.adapters.assembled import assembled
from tests.integrations.adapters.hostile import text_of, with_text
from tests.integrations.adapters.subject import Subject
from tests.tables.cases import tabled

STORY = Story(text="one MARK two", pieces=1)


def test_answer__with_half_a_character__the_rest_of_it(subject: Subject) -> None:
    body = subject.fake.whole(STORY).body.replace(b"MARK", rb"\ud83d")
    answer = json.loads(subject.adapter.parse_response(subject.request(), body).body)
    assert answer["choices"][0]["message"]["content"] == "one \ufffd two"


def test_stream__with_half_a_character__the_rest_of_it(subject: Subject) -> None:
    events = [
        with_text(event, text_of(event).replace(b"MARK", rb"\ud83d")) if b"MARK" in event else event
        for event in subject.fake.stream(STORY).events
    ]
    outcome = subject.translate(events)
    assert outcome.error is None
    assert assembled(outcome.chunks)["message"]["content"] == "one \ufffd two"


@tabled
def test_halves__among_other_escapes__replaced(text: bytes, expected: bytes) -> None:
    assert with_whole_characters(text) == expected


@given(st.text(st.characters(codec=None)))
def test_halves__in_any_text__what_python_reads_with_replacements(text: str) -> None:
    decoded = json.loads(with_whole_characters(json.dumps(text).encode()))
    assert decoded == "".join("\ufffd" if 0xD800 <= ord(one) <= 0xDFFF else one for one in json.loads(json.dumps(text)))
