"""Every text of a request is read, wherever its JSON holds it, and no valid request is too odd."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.guardrails.checks import DigestCache, PromptLength, Request
from gateway.guardrails.spotlight import Spotlight
from gateway.guardrails.texts import Speaker, text_segments
from gateway.guardrails.tools import tools_of
from gateway.protocol.marked_documents import pieces_of
from gateway.protocol.wire import decode_request
from tests.tables.cases import tabled

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NEEDLE = "needle@example.org"


@tabled
def test_text_segments__needle__is_read_and_has_its_speaker(message: dict[str, Any], speaker: Speaker) -> None:
    body = json.dumps({"model": "gpt-4o", "messages": [message]}).encode()
    decode_request(body)
    read = [segment for segment in text_segments(json.loads(body)) if NEEDLE in segment.text]
    assert [segment.speaker for segment in read] == [speaker]


@tabled
def test_text_segments__delimiters__divide_documents_from_the_users_words(
    text: str, documents: list[str], own: str
) -> None:
    delimiters = (("<doc>", "</doc>"), ("[[", "]]"))
    for content in (text, [{"type": "text", "text": text}]):
        found = list(text_segments({"messages": [{"role": "user", "content": content}]}, delimiters))
        assert [segment.text for segment in found if segment.speaker is Speaker.UNTRUSTED] == documents
        assert "".join(segment.text for segment in found if segment.speaker is Speaker.USER) == own
    result = {"role": "tool", "tool_call_id": "1", "content": text}
    assert [*text_segments({"messages": [result]}, delimiters)] == [(Speaker.UNTRUSTED, text)]


@given(st.text("ab<>[]/ \n", max_size=40))
def test_pieces_of__any_text__are_the_text(text: str) -> None:
    assert "".join(piece.text for piece in pieces_of(text, (("<a", "a>"), ("[", "]"), ("a", "[")))) == text


def test_text_segments__prediction__is_the_users() -> None:
    fields = {"messages": [], "prediction": {"type": "content", "content": NEEDLE}}
    assert [segment.text for segment in text_segments(fields)] == [NEEDLE]


def test_text_segments__picture__says_nothing() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert list(text_segments({"messages": [{"role": "user", "content": [part]}]})) == []


@given(st.sampled_from(["user", "assistant", "tool"]), JSON, JSON, JSON, JSON)
def test_request__any_json_in_open_fields__is_read(
    role: str, extra: Any, calls: Any, functions: Any, tool: Any
) -> None:
    message = {
        "role": role,
        "tool_call_id": "1",
        "content": [{"type": "odd", "more": extra}, {"type": "text", "text": "hi"}],
        "function_call": calls,
        "anything": extra,
        "tool_calls": [{"function": calls, "type": "function"}],
    }
    fields = {
        "messages": [message],
        "functions": functions,
        "tools": [{"type": "function", "function": tool}, {"type": "allowed_tools", "allowed_tools": tool}],
        "tool_choice": {"function": tool},
        "function_call": tool,
        "prediction": extra,
    }
    assert all(isinstance(segment.text, str) for segment in text_segments(fields))
    assert all(isinstance(name, str) for name in tools_of(fields))


@given(st.text(), st.text())
def test_spotlight__any_text__comes_back_out_of_its_marks(text: str, question: str) -> None:
    messages = [
        {"role": "user", "content": question},
        {"role": "tool", "tool_call_id": "1", "content": text},
        {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": text}]},
        {"role": "user", "content": [{"type": "document_url", "document_url": {"url": "https://a.example/b.pdf"}}]},
    ]
    body = json.dumps({"model": "m", "messages": messages, "n": 1}, ensure_ascii=False).encode("utf-8", "replace")
    given_back = json.loads(body)["messages"]

    light = Spotlight(b"key")
    sent = json.loads(light.apply(body))

    assert light.marked == 3
    assert sent["n"] == 1
    assert sent["messages"][1] == given_back[0]
    for message in sent["messages"][2:4]:
        content = message["content"]
        marked = content if isinstance(content, str) else content[0]["text"]
        begin, rest = marked.split("\n", 1)
        inside, end = rest.rsplit("\n", 1)
        assert inside == given_back[1]["content"]
        assert end == begin.replace("⟦", "⟦/")
        assert begin not in inside and end not in inside
    assert [part["type"] for part in sent["messages"][4]["content"]] == ["text", "document_url", "text"]


def test_remembered__long_text__is_read_once_and_short_texts_each_time() -> None:
    read: list[str] = []

    def length(text: str) -> int:
        read.append(text)
        return len(text)

    detect = DigestCache(length)
    assert [detect("x" * 500), detect("x" * 500), detect("x"), detect("x")] == [500, 500, 1, 1]
    assert read == ["x" * 500, "x", "x"]


def test_remembered__other_terms__are_looked_for_on_their_own() -> None:
    detect = DigestCache(lambda text, term: text.count(term))
    text = "ab" * 200 + "b"
    assert [detect(text, "a"), detect(text, "b"), detect(text, "a")] == [200, 201, 200]


def test_remembered__of_what_is_not_worth_it__is_nothing() -> None:
    read: list[str] = []

    def words(text: str) -> list[str]:
        read.append(text)
        return text.split()

    detect = DigestCache(words, worth=lambda found: len(found) < 100)
    assert [len(detect(text)) for text in ["x " * 300, "x " * 300, "x" * 300, "x" * 300]] == [300, 300, 1, 1]
    assert read == ["x " * 300, "x " * 300, "x" * 300]


@pytest.mark.parametrize(("tokens", "findings"), [(2000, []), (2001, ["2001 tokens"])])
def test_prompt_length__up_to_the_limit__is_no_finding(tokens: int, findings: list[str]) -> None:
    assert [found.detail for found in PromptLength(2000).inspect(Request({}, tokens, {}))] == findings
