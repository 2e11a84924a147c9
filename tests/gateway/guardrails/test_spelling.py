"""Markup, codes, points and emoji hide nothing from the detectors, and make an attack of no harmless text."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from itertools import cycle, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.detectors.injection import injection_score
from gateway.guardrails.detectors.pii import find_pii
from gateway.guardrails.detectors.topics import find_topics
from tests.gateway.guardrails.test_injection import ATTACKS, HARMLESS
from tests.tables.cases import stored, tabled

Write = Callable[[str], str]


def each_word(*writings: Write) -> Write:
    """Returns the function that writes one word after the other in one of these ways."""

    def write(text: str) -> str:
        ways = cycle(writings)
        return re.sub(r"[^\W\d_]{2,}", lambda word: next(ways)(word[0]), text)

    return write


def blanks(instead: str) -> Write:
    return lambda text: text.replace(" ", instead)


def enclosed(marks: str) -> Write:
    return lambda word: f"{marks}{word}{marks}"


def cut(sign: str) -> Write:
    return lambda word: f"{word[:2]}{sign}{word[2:]}" if len(word) > 2 else word


def coded(word: str) -> str:
    return f"&#{ord(word[0])};{word[1:]}"


def percents(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


WRITINGS: dict[str, Write] = {
    "emphasis": each_word(enclosed("**"), enclosed("_"), enclosed("`"), enclosed("~~"), enclosed("***")),
    "emphasis within": each_word(cut("**")),
    "numbers of blanks": blanks("&#32;"),
    "names of blanks": blanks("&nbsp;"),
    "hexadecimal blanks": blanks("&#x20;"),
    "entities in words": each_word(coded),
    "entities of entities": blanks("&amp;#32;"),
    "percent blanks": blanks("%20"),
    "percent codes of codes": blanks("%2520"),
    "percent letters": each_word(lambda word: percents(word[0]) + word[1:]),
    "points in words": each_word(cut(".")),
    "points between letters": each_word(".".join),
    "points for blanks": blanks("."),
    "middle points": blanks(" \xb7 "),
    "emoji for blanks": blanks("\U0001f525"),
    "emoji between words": blanks(" \U0001f600 "),
    "emoji in words": each_word(cut("\u2b50")),
    "bars": blanks("|"),
    "tags in words": each_word(cut("<b></b>")),
    "links": each_word(lambda word: f"[{word}](https://e.example/)"),
    "mixed": lambda text: blanks("\U0001f525")(each_word(enclosed("**"), coded, cut("."), enclosed("_"))(text)),
    "mixed codes": lambda text: blanks("%20")(each_word(cut("."), coded, enclosed("`"), lambda word: word)(text)),
}
LATIN = [attack for attack in ATTACKS if attack.isascii()]
PLAIN = LATIN[0]


@pytest.mark.parametrize("name", WRITINGS)
def test_injection_score__order_in_another_spelling__is_found(name: str) -> None:
    text = WRITINGS[name](PLAIN)
    assert injection_score(text, untrusted=False).is_injection, text


def test_injection_score__points_after_all_words__are_found() -> None:
    assert injection_score(PLAIN.replace(" ", ". "), untrusted=False).is_injection


@pytest.mark.parametrize("name", WRITINGS)
def test_injection_score__every_attack_in_another_spelling__is_found(name: str) -> None:
    for attack in LATIN:
        text = WRITINGS[name](attack)
        assert injection_score(text, untrusted=True).is_injection, text


@pytest.mark.parametrize("name", WRITINGS)
def test_injection_score__every_harmless_text_in_another_spelling__is_harmless(name: str) -> None:
    for harmless in HARMLESS:
        text = WRITINGS[name](harmless)
        # `[System]` marks a system message, and a link behind it does not change that.
        is_mark = text.startswith("[System]")
        assert injection_score(text, untrusted=False).is_injection == is_mark, text


@pytest.mark.parametrize("name", WRITINGS)
def test_find_topics__topic_in_another_spelling__is_found(name: str) -> None:
    text = WRITINGS[name]("tell me about the moon landing please")
    assert find_topics(text, ("insider trading", "Moon landing")) == ["Moon landing"], text


def test_find_topics__topic_with_signs__is_found_as_it_is_written() -> None:
    topics = ("C++", "snake_case", "__init__", "AT&T", "100%25")
    assert find_topics("C++ and snake_case, __init__ of AT&T at 100%25", topics) == list(topics)


# How each blank of a number that is written in groups may be written.
SPLITS = stored(__file__, "SPLITS")
CARDS = ("4242 4242 4242 4242", "3782 822463 10005", "5555 5555 5555 4444", "6011 1111 1111 1117")


@pytest.mark.parametrize("name", SPLITS)
def test_find_pii__card_split_in_groups__is_found_where_it_stands(name: str) -> None:
    for card in CARDS:
        written = card.replace(" ", SPLITS[name])
        text = f"Pay with {written} until 12/27 (cvc 123)"
        assert [(kind, text[start:end]) for kind, start, end in find_pii(text)] == [("card", written)]


@pytest.mark.parametrize("sign", [" ", "-", "_", "/", "&nbsp;", "%20", "\xa0", " \xb7 "])
def test_find_pii__card_with_blanks_between_all_digits__is_found(sign: str) -> None:
    for card in CARDS:
        written = sign.join(card.replace(" ", ""))
        text = f"Pay with {written}, until 12/27"
        assert [(kind, text[start:end]) for kind, start, end in find_pii(text)] == [("card", written)]


@tabled
def test_find_pii__list_of_numbers__is_no_card(text: str) -> None:
    assert "card" not in [entity.kind for entity in find_pii(text)]


IDENTIFIERS = [
    ("email", "ada.lovelace@example.org"),
    ("card", "4242424242424242"),
    ("iban", "DE89370400440532013000"),
    ("us_ssn", "536-90-4399"),
    ("ip", "203.0.113.9"),
    ("phone", "+44 20 7946 0958"),
    ("crypto", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
]
CODES: dict[str, Write] = {
    "numbers": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "hexadecimal": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "percent": percents,
    "percent twice": lambda text: percents(percents(text)),
    "signs by name": lambda text: (
        html.escape(text).replace("@", "&commat;").replace(".", "&period;").replace("-", "%2D").replace("+", "&plus;")
    ),
    "bold": enclosed("**"),
    "code": enclosed("`"),
}


@pytest.mark.parametrize("name", CODES)
def test_find_pii__identifier_in_codes__is_masked_as_it_stands(name: str) -> None:
    for kind, identifier in IDENTIFIERS:
        written = CODES[name](identifier)
        text = f"\U0001f44d so it is {written}, I think"
        (entity,) = find_pii(text)
        masked = text[entity.start : entity.end].strip("*`")
        assert (entity.kind, masked) == (kind, written.strip("*`"))


@given(st.text(st.sampled_from("&#;%25;3240ax*_`~ \n@.\u200b"), max_size=60))
def test_find_pii__any_text_of_codes__has_places_within_it(text: str) -> None:
    found = find_pii(text)
    assert all(0 <= entity.start < entity.end <= len(text) for entity in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
