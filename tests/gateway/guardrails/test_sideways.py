"""Indirect requests for the instructions are distinguished from texts that only use their words."""

from __future__ import annotations

from gateway.guardrails.detectors.injection import injection_score
from tests.tables.cases import stored, tabled

# The texts of FRESH were written after the rules.
FRESH = stored(__file__, "FRESH")


@tabled
def test_injection_score__indirect_request_for_the_instructions__reaches_the_threshold(text: str) -> None:
    assert injection_score(text, untrusted=False).is_injection


def test_injection_score__fresh_sentences__mostly_reach_it() -> None:
    found = [text for text in FRESH if injection_score(text, untrusted=False).is_injection]
    assert len(found) / len(FRESH) >= 0.8


@tabled
def test_injection_score__harmless_text_in_their_words__does_not(text: str) -> None:
    assert not injection_score(text, untrusted=False).is_injection
