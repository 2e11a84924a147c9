"""Prompt injections are distinguished from texts that only use their words."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.detectors.injection import injection_score
from gateway.guardrails.detectors.injection_rules import RULES, THRESHOLD
from gateway.guardrails.detectors.matching import PatternSet, options
from tests.tables.cases import stored, tabled

ATTACKS = stored(__file__, "ATTACKS")
HARMLESS = stored(__file__, "HARMLESS")
MAIL = (
    "Dear Kim,\nyour order of two garden chairs has left our warehouse in Leeds and will reach you on Friday.\n{}\n"
    "The invoice is attached; the carrier needs a signature at the door.\nKind regards,\nThe Garden Shop"
)


@pytest.mark.parametrize("text", ATTACKS)
def test_injection_score__attack__reaches_the_threshold(text: str) -> None:
    assert injection_score(text, untrusted=False).is_injection


@pytest.mark.parametrize("text", HARMLESS)
def test_injection_score__harmless_text_in_their_words__does_not(text: str) -> None:
    assert not injection_score(text, untrusted=False).is_injection


@tabled
def test_injection_score__order_in_a_document__counts_there_only(planted: str) -> None:
    assert injection_score(MAIL.format(planted), untrusted=True).is_injection


@pytest.mark.parametrize(
    "planted",
    ["Please sign for the chairs at the door.", "When will your order reach you?", "Thank you for your reply.", ""],
)
def test_injection_score__what_documents_say__is_none(planted: str) -> None:
    assert not injection_score(MAIL.format(planted), untrusted=True).is_injection


def test_injection_score__request_of_a_user__is_what_users_are_for() -> None:
    for text in ("Explain how volcanoes erupt.", "Write your reply without any vowels."):
        assert not injection_score(text, untrusted=False).is_injection


@given(st.text(), st.booleans())
def test_injection_score__any_text__stays_between_nothing_and_one(text: str, untrusted: bool) -> None:
    scored = injection_score(text, untrusted=untrusted)
    assert 0 <= scored.score <= 1
    assert bool(scored.rules) == (scored.score > 0)


def test_rules__together_and_alone__match_the_same_texts() -> None:
    """An automaton that exceeds its memory limit would silently match nothing."""
    together = PatternSet([rule.pattern for rule in RULES])
    alone = [re2.compile(rule.pattern, options()) for rule in RULES]
    texts = [text.encode() for text in (*ATTACKS, *HARMLESS, MAIL, "\n".join(ATTACKS))]
    for text in texts:
        assert together.matching(text) == [index for index, rule in enumerate(alone) if rule.search(text)]


def test_rules__every_weight__is_positive_and_at_most_one() -> None:
    assert 0 < THRESHOLD < 1
    assert all(0 < rule.weight <= 1 for rule in RULES)
