"""The share of words that two texts have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.queries.word_overlap import word_overlap


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("How do I reset my password?", "how do i reset my PASSWORD", 1.0),
        ("one two three four five six seven eight nine ten", "one two three four five six seven eight nine zehn", 0.9),
        ("reset my password", "my password, reset!", 1.0),
        ("no no no no", "no", 0.4),
        ("why", "why is it so", 0.4),
        ("", "", 0.0),
        ("?!…", "?!…", 0.0),
        ("", "word", 0.0),
        ("snake_case", "snake case", 1.0),
        ("Straße", "STRASSE", 1.0),
        ("东京天气怎么样", "东京天气怎么样?", 1.0),
        ("东京天气怎么样", "大阪天气怎么样", 2 * 5 / 14),
        ("v2の料金", "v2 の料金", 1.0),
    ],
)
def test_word_overlap__texts__the_share_of_their_words(first: str, second: str, overlap: float) -> None:
    assert word_overlap(first, second) == pytest.approx(overlap)


@given(st.text(), st.text())
def test_word_overlap__any_texts__symmetric_and_a_share(first: str, second: str) -> None:
    found = word_overlap(first, second)
    assert found == word_overlap(second, first)
    assert 0 <= found <= 1
    assert word_overlap(first, first) in (0, 1)
