"""Readable text is found inside encodings; most words that only look encoded are recognized without decoding."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.detectors.encodings import decoded
from tests.tables.cases import tabled

# The characters have every length in UTF-8; there are four, because shorter texts are not looked for.
READABLE = st.text(
    st.one_of(st.characters(codec="ascii", categories=("L", "N", "P")), st.characters(categories=("L", "N", "P", "S"))),
    min_size=4,
    max_size=40,
).filter(lambda text: text.isprintable() and "%" not in text)


def plain_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def url_base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def is_all_small(code: str) -> bool:
    """Returns whether the text has only small letters: base64 that looks like a word is taken for one."""
    return code.isalpha() and code.islower()


@given(READABLE)
def test_decoded__base64_of_any_text__read(text: str) -> None:
    for code in (plain_base64(text), url_base64(text)):
        if not is_all_small(code):
            assert text in decoded(f"chart\n{code}")
            assert text in decoded(f"chart\n{code.replace('+', ' ')}.png")


@given(READABLE)
def test_decoded__base64_backwards__read(text: str) -> None:
    code = plain_base64(text)
    if len(code) >= 12 and not is_all_small(code) and not set(code) <= set("0123456789abcdefABCDEF"):
        assert text in decoded(f"id={code[::-1]}&")


@given(READABLE)
def test_decoded__hexadecimal_of_any_text__read(text: str) -> None:
    assert text in decoded(f"x-{text.encode().hex()}_y")
    assert text in decoded(text.encode().hex().upper())


@given(READABLE)
def test_decoded__base64_of_base64__read(text: str) -> None:
    code = plain_base64(text)
    twice = plain_base64(code)
    if not is_all_small(code) and not is_all_small(twice):
        assert text in decoded(twice)


@tabled
def test_decoded__words_digests_and_names__nothing(text: str) -> None:
    assert list(decoded(text)) == []
