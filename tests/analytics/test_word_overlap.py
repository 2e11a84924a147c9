"""The share of words that two texts have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.queries.variants.signals import word_overlap
from tests.tables.cases import tabled


@tabled
def test_word_overlap__texts__the_share_of_their_words(first: str, second: str, overlap: float) -> None:
    assert word_overlap(first, second) == pytest.approx(overlap)


@given(st.text(), st.text())
def test_word_overlap__any_texts__symmetric_and_a_share(first: str, second: str) -> None:
    found = word_overlap(first, second)
    assert found == word_overlap(second, first)
    assert 0 <= found <= 1
    assert word_overlap(first, first) in (0, 1)
