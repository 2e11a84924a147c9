"""Personal data is found by its form and its checksum, and nothing else is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.detectors.pii import PiiKind, find_pii
from tests.tables.cases import tabled


def found(text: str) -> list[tuple[str, str]]:
    return [(entity.kind.value, text[entity.start : entity.end]) for entity in find_pii(text)]


@tabled
def test_find_pii__identifier__found_with_its_span(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "meet @ noon, user@localhost, a@b",
        "order 4242424242424241",  # The checksum is wrong.
        "order 122000000000003 and 536904399",
        "number 9999999999999995",  # This number range is not issued.
        "4111.1111.1111.1112 and 41111.111111.11111 and 4111111.111111111 or 0.4111111111111111",
        "order 912711234 and invoice 912711235",
        "my ITIN is 912691234 and my taxpayer id 812711234",  # The groups of digits of these numbers are not assigned.
        "the TIN of 9127112345 and itin 12-912711234",
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14",
        "GB82WEST12345698765431",  # The checksum is wrong.
        "666-12-3456 and 000-12-3456 and 123-00-4567",
        "078-05-1120",  # This number was printed in advertisements.
        "999.1.1.1 and 1.2.3 and v10.0.0.1 and version 10.0.0.1",
        "at 12:34:56, aa:bb:cc:dd:ee:ff, std::vector, foo :: Int",
        "on 2024-05-17 or 17.05.2024 or 05/17/2024",
        "pi is 3.14159265358979 and e 2.71828182845904",
        "account number is 12345678",
        "in 1989 2,500,000 people; pages 123-4567",
        "16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ2",
    ],
)
def test_find_pii__look_alike__is_nothing(text: str) -> None:
    assert found(text) == []


@given(st.text(), st.sampled_from(["ada@example.org", "4242 4242 4242 4242", "+44 20 7946 0958", "2001:db8::7"]))
def test_find_pii__any_text_around__covers_the_identifier(around: str, identifier: str) -> None:
    text = f"{around} {identifier} {around}"
    entities = find_pii(text)
    assert all(0 <= entity.start < entity.end <= len(text) for entity in entities)
    assert all(one.end <= other.start for one, other in pairwise(entities))
    covered = "".join(text[entity.start : entity.end] for entity in entities)
    assert identifier in covered


@given(st.text(alphabet="0123456789 .:-+()@ab/x\n\u00e9", max_size=300))
def test_find_pii__numbers_and_signs__spans_are_ordered_and_inside(text: str) -> None:
    entities = find_pii(text)
    assert all(0 <= entity.start < entity.end <= len(text) for entity in entities)
    assert all(one.end <= other.start for one, other in pairwise(entities))


def test_find_pii__lone_surrogate__is_a_character_like_others() -> None:
    assert found("\ud800 ada@example.org \udfff") == [(PiiKind.EMAIL.value, "ada@example.org")]
