"""The window of a guarded stream lets out, for any cutting of a text, what masking the whole text gives."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.guardrails.detectors.pii import find_pii
from gateway.guardrails.output.json_window import JsonWindow
from gateway.guardrails.output.masks import LINK_REMOVED, Masks
from gateway.guardrails.output.topics import TopicGate
from gateway.guardrails.output.window import MAX_HELD, Notes, TextWindow
from tests.night import examples

ENTITIES = [
    "ada@example.org", "4242 4242 4242 4242", "+49 30 901820 22", "DE89 3704 0044 0532 0130 00", "536-22-1234",
    "GB29 NWBK 6016 1331 9268 19", "10.1.2.3", "fe80::1ff:fe23:4567:890a", "(415) 555-0132", "ssn is 536221234",
    "phone: 5550100 or 5550101 or 5550102", "415-555-0132 office", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
    "a\u200bda@exam\u00adple.org", "4242\u2060 42\u200b42\ufeff4242 4242", "10.\u200b1.2.3",
    "fe80:\u200b:1ff\u200b:fe23",
    "".join(chr(0xE0000 + ord(character)) for character in "ada@example.org"),
]  # fmt: skip
WORDS = [
    "the",
    "my",
    "number",
    "is",
    "or",
    ",",
    ".",
    "7",
    "12:30",
    "v1.2.3.4",
    "\n",
    "+",
    "::",
    "(",
    "déjà",
    "😀",
    "abcd",
    "\u200b",
    "❤\ufe0f",
]
pieces = st.lists(
    st.one_of(
        st.sampled_from(ENTITIES), st.sampled_from(WORDS), st.sampled_from([" ", " ", "\n", ""]), st.text(max_size=5)
    ),
    max_size=60,
)
texts = st.builds(lambda parts, between: between.join(parts), pieces, st.sampled_from([" ", "", " and then some "]))
cuts = st.lists(st.integers(0, 2000), max_size=40)


def make(kind: type[TextWindow], topics: tuple[str, ...] = (), links: bool = False) -> TextWindow:
    return kind(Masks(personal_data=True, links=links, texts=list), topics, Notes())


def through(window: TextWindow, text: str, places: list[int]) -> str:
    out, at = [], 0
    for place in sorted({place for place in places if place < len(text)}):
        out.append(window.feed(text[at:place]))
        at = place
    return "".join([*out, window.feed(text[at:]), window.finish()])


def masked_whole(text: str) -> str:
    out, at = [], 0
    for kind, start, end in find_pii(text):
        out += [text[at:start], f"[{kind.value.upper()}]"]
        at = end
    return "".join([*out, text[at:]])


@settings(max_examples=examples(37, 150), deadline=None)
@given(texts, cuts)
def test_any_cutting_gives_the_same(text: str, places: list[int]) -> None:
    whole = through(make(TextWindow), text, [])
    assert through(make(TextWindow), text, places) == whole
    assert through(make(TextWindow), text, list(range(len(text)))) == whole
    assert through(make(TextWindow, ("quite another thing", "my number")), text, places) == whole


@settings(max_examples=examples(37, 150), deadline=None)
@given(st.lists(st.one_of(st.sampled_from(ENTITIES), st.sampled_from(WORDS)), max_size=80).map(" ".join))
def test_it_is_what_the_whole_text_gives(text: str) -> None:
    assert through(make(TextWindow), text, list(range(0, len(text), 3))) == masked_whole(text)


@settings(max_examples=examples(37, 150), deadline=None)
@given(texts, cuts, st.booleans())
def test_json_stays_json(text: str, places: list[int], escaped: bool) -> None:
    value = {"said": text, "list": [text[:40], -4242424242424242.5, 4242424242424242, True, None], text[:20]: {}}
    source = json.dumps(value, ensure_ascii=escaped)
    whole = through(make(JsonWindow), source, [])
    assert through(make(JsonWindow), source, places) == whole
    masked = json.loads(whole)
    assert masked["list"][2] == "[CARD]"
    if not find_pii(json.dumps(value, ensure_ascii=False)):
        assert whole == source


@settings(max_examples=examples(25, 100), deadline=None)
@given(st.text(max_size=200), cuts)
def test_what_is_no_json_passes(text: str, places: list[int]) -> None:
    if not find_pii(text):
        assert through(make(JsonWindow), "\\" + text, places).startswith("\\"[: len(text)])
        assert through(make(JsonWindow), text, places) == through(make(JsonWindow), text, [])


def test_any_number_of_unseen_characters_is_masked_with_what_they_stand_in() -> None:
    card = ("4242" + "\u200b" * 90 + " ") * 3 + "4242"
    text = f"It is {card} as you see"
    assert through(make(TextWindow), text, list(range(0, len(text), 5))) == "It is [CARD] as you see"


def test_plain_words_wait_for_nothing() -> None:
    window = make(TextWindow)
    assert [window.feed(word) for word in ("Hello ", "there, ", "my ", "friend")] == ["Hello ", "there, ", "my ", ""]
    assert window.finish() == "friend"


def test_never_more_than_the_bound_is_held() -> None:
    window = make(TextWindow)
    for piece in ["17 4 "] * 2000 + ["x7" * 400] * 20:
        given_before = window.feed(piece)
        assert len(window._text) - window._given <= MAX_HELD + len(piece), given_before


def test_a_long_text_without_a_blank_goes_out_whole() -> None:
    text = "ab1" * 5000 + " ada@example.org " + "deadbeef01" * 500
    assert through(make(TextWindow), text, list(range(0, len(text), 7))) == text.replace("ada@example.org", "[EMAIL]")


def test_the_rest_of_a_long_address_goes_with_it() -> None:
    secret = "what was said here is no business of others but ours"
    url = "https://evil.example/p?d=" + "+".join(secret.split()) + "&pad=" + "q" * 1500
    masks = Masks(personal_data=False, links=True, texts=lambda: [secret])
    text = f"See ![x]({url}) now"
    for step in (1, 7, 5000):
        window = TextWindow(masks, (), Notes())
        assert through(window, text, list(range(0, len(text), step))) == f"See ![x]({LINK_REMOVED}) now"


class TestTopics:
    def test_holds_what_may_become_a_phrase(self) -> None:
        gate = TopicGate(("atom bomb", "moon landing"))
        assert [gate.feed(piece) for piece in ("an ", "at", "om ", "mo", "del")] == [3] * 5
        assert gate.feed(" is ") == len("an atom model is ")
        assert gate.found == []

    def test_finds_a_phrase_however_it_is_cut(self) -> None:
        text = "It was the \uff2dOO\uff2e\n  landing, they said"
        for step in range(1, len(text)):
            gate, out = TopicGate(("moon landing",)), 0
            for at in range(0, len(text), step):
                gate_out = gate.feed(text[at : at + step])
                if not gate.found:
                    out = gate_out
            assert gate.found
            assert out <= len("It was the ")

    def test_the_beginning_of_a_longer_word_is_none(self) -> None:
        gate = TopicGate(("atom bomb",))
        gate.feed("atom bomb")
        gate.feed("astic ")
        assert gate.found == []
        gate.feed("atom bomb", final=True)
        assert gate.found == ["atom bomb"]

    def test_words_that_no_blank_ends(self) -> None:
        gate = TopicGate(("原子弹",))
        gate.feed("关于" * 100 + "原子弹" + "的历史" * 100)
        assert gate.found == ["原子弹"]
