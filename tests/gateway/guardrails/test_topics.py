"""Topics are whole words, however they are written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.detectors.topics import find_topics
from tests.tables.cases import tabled


@tabled
def test_find_topics__named__is_found(text: str, topic: str) -> None:
    assert find_topics(text, ("other", topic)) == [topic]


@tabled
def test_find_topics__part_of_a_word__is_not(text: str, topic: str) -> None:
    assert find_topics(text, (topic,)) == []


def test_find_topics__several_hundred__in_the_order_of_the_list() -> None:
    topics = tuple(f"topic{number}" for number in range(500))
    assert find_topics("topic499 and topic7", topics) == ["topic7", "topic499"]


def test_find_topics__as_many_and_as_long_as_settings_allow__are_found() -> None:
    topics = tuple(chr(0x1F300 + number) * 100 + "ß" * 100 for number in range(50))
    assert find_topics(" ".join(topics).upper(), topics) == list(topics)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.text())
def test_find_topics__any_phrase__never_fails(topics: list[str], text: str) -> None:
    assert set(find_topics(text, tuple(topics))) <= set(topics)
