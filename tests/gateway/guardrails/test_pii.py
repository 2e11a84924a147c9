"""Personal data is found by its form and its checksum, and nothing else is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.detectors.pii import PiiKind, find_pii


def found(text: str) -> list[tuple[str, str]]:
    return [(entity.kind.value, text[entity.start : entity.end]) for entity in find_pii(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to ada.lovelace+x@mail.example.co.uk.", [("email", "ada.lovelace+x@mail.example.co.uk")]),
        ("grüße an jürgen@müller.example", [("email", "jürgen@müller.example")]),
        ("<ada@example.org>, `bob@example.org`", [("email", "ada@example.org"), ("email", "bob@example.org")]),
        ("pay with 4242 4242 4242 4242 please", [("card", "4242 4242 4242 4242")]),
        ("amex 3782-822463-10005", [("card", "3782-822463-10005")]),
        ("IBAN DE89 3704 0044 0532 0130 00 from today", [("iban", "DE89 3704 0044 0532 0130 00")]),
        ("be71 0961 2345 6769 that one", [("iban", "be71 0961 2345 6769")]),
        ("ssn 536-90-4399.", [("us_ssn", "536-90-4399")]),
        ("my social security number is 536904399", [("us_ssn", "536904399")]),
        (" 536904399\n", [("us_ssn", "536904399")]),
        ("536-904399 53690-4399", [("us_ssn", "536-904399"), ("us_ssn", "53690-4399")]),
        ("122000000000003", [("card", "122000000000003")]),
        ("the card is 122000000000003.", [("card", "122000000000003")]),
        ("4242424242424242 4242-4242-4242-4242", [("card", "4242424242424242"), ("card", "4242-4242-4242-4242")]),
        ("itin 912-71-1234", [("us_itin", "912-71-1234")]),
        ("my ITIN is 912711234.", [("us_itin", "912711234")]),
        ("Taxpayer identification number (TIN): 912-711234", [("us_itin", "912-711234")]),
        ("el número de identificación personal del contribuyente es 991881234", [("us_itin", "991881234")]),
        ("912711234 is my ITIN", [("us_itin", "912711234")]),
        ("912711234\n", [("us_itin", "912711234")]),
        ("912711234, 91271-1235", [("us_itin", "912711234"), ("us_itin", "91271-1235")]),
        ("536904399, 912711234", [("us_ssn", "536904399"), ("us_itin", "912711234")]),
        ("pay with 4111.1111.1111.1111.", [("card", "4111.1111.1111.1111")]),
        ("amex 3782.822463.10005 now", [("card", "3782.822463.10005")]),
        ("diners 3056.930902.5904", [("card", "3056.930902.5904")]),
        ("4242424242424242.50 EUR", [("card", "4242424242424242")]),
        ("from 10.1.2.3 4242.4242.4242.4242", [("ip", "10.1.2.3"), ("card", "4242.4242.4242.4242")]),
        ("from 203.0.113.9:8080 to [2001:db8::7]", [("ip", "203.0.113.9"), ("ip", "2001:db8::7")]),
        ("listening on ::", [("ip", "::")]),
        ("call +44 20 7946 0958 now", [("phone", "+44 20 7946 0958")]),
        ("or (212) 555-0147 x12", [("phone", "(212) 555-0147 x12")]),
        ("Fax: 434 14 557", [("phone", "434 14 557")]),
        ("020 7946 0958", [("phone", "020 7946 0958")]),
        (
            "send to bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            [("crypto", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq")],
        ),
        ("wide: ４２４２424242424242", [("card", "４２４２424242424242")]),
        ("+49\u00a030\u2011901820", [("phone", "+49\u00a030\u2011901820")]),
    ],
)
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
