"""A search finds what a search in plain Python finds in the same texts."""

# ruff: noqa: RUF001 - letters of many scripts are what is tested
from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.queries import search as searching
from analytics.queries.search import SearchFilter, search
from analytics.queries.search_terms import parse
from analytics.request_log.record import SpoolEntry
from analytics.shipper.texts import completion_text, prompt_text
from analytics.traffic.texts import OWN_TEXTS
from tests.analytics.requests.entries import chat
from tests.factories.analytics import make_entry, store
from tests.night import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

_ALPHABETS = (
    "abcdefgh ABCDEFGH",
    "iIİıßẞéÉåÅ äÄ",
    "абвгд АБВГД ёЁ",
    "αβγδσς ΑΒΓΔΣ",
    "用户请求退款服务器订",
    "ひらカタカナー漢字",
    "한국어조선 ไทยภาษา",
    "مرحبا العميل",
    "🙂👩\u200d💻🇩🇪e\u0301i\u0307",
    "%_\\'\"{}[]()$?*|^`;-- \t\n",
    "\x00\ud800\udfff0123456789",
)
_WRITTEN = (
    "Артикль 1. Все люди рождаются свободными и равными в своём достоинстве и правах; цена — 12.50 €.",
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια, x=y+1, c++ και a_b.",
    "人人生而自由，在尊严和权利上一律平等。version 10.2.3-rc1 他们赋有理性和良心。",
    "すべての人間は、生まれながらにして自由であり、API の limit は 100% です。",
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. don't",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है। #42",
    "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. f(x) -> {'a': 1}",
    "มนุษย์ทั้งปวงเกิดมามีอิสระ 3f2b9c1e-77aa ÇĞİŞ ıışık İstanbul",
)
# Longer than the words of the vocabulary.
_LONG = st.integers(0, 3).map(lambda number: (b"%d" % number * 99).hex() + "QmFzZTY0IG9mIGEgcGljdHVyZQ")
_PIECE = st.one_of([*(st.text(alphabet, min_size=1, max_size=12) for alphabet in _ALPHABETS), _LONG])
_TEXT = st.lists(_PIECE, max_size=6).map("".join)


@st.composite
def _queries(draw: st.DrawFn, texts: list[tuple[str, str]]) -> str:
    """Draws pieces of the texts, in other letter cases and in quotes, and sometimes words that are in no text."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        text = draw(st.one_of(st.sampled_from([side for pair in texts for side in pair]), _TEXT))
        start = draw(st.integers(0, max(0, len(text) - 1)))
        piece = text[start : start + draw(st.integers(1, 9))]
        changed = draw(st.sampled_from([piece, piece.upper(), piece.lower(), piece.swapcase()]))
        parts.append(draw(st.sampled_from([changed, f'"{changed}"'])))
    # The API refuses these queries before it searches.
    return "".join(c for c in " ".join(parts) if c != "\x00" and not "\ud800" <= c <= "\udfff")


def _plain(text: str) -> str:
    return text.lower().replace("i\u0307", "i").replace("ı", "i").replace("ς", "σ")


def _matches(entry: SpoolEntry, terms: list[str]) -> bool:
    sides = (_plain(prompt_text(entry.request).decode()), _plain(completion_text(entry.response).decode()))
    return all(any(_plain(term) in side for side in sides) for term in terms)


@pytest.mark.parametrize("indexed", [True, False])
@settings(max_examples=examples(5, 12), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_search__any_texts_and_queries__finds_what_plain_python_finds(
    tmp_path_factory: pytest.TempPathFactory, indexed: bool, data: st.DataObject
) -> None:
    texts = data.draw(st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=12))
    project, other = uuid.uuid4(), uuid.uuid4()
    mine = [make_entry(**chat(*pair), project_id=str(project)) for pair in texts]
    theirs = [make_entry(**chat(*pair), project_id=str(other)) for pair in texts]
    directory: Path = tmp_path_factory.mktemp("spool")
    store(directory, *mine, *theirs)

    with pytest.MonkeyPatch.context() as patch:
        if not indexed:
            patch.setattr(searching, "_has_indexes", lambda: False)
        for query in data.draw(st.lists(_queries(texts), min_size=4, max_size=8)):
            terms = parse(query)
            if not terms:
                continue
            expected = [e.record.request_id for e in reversed(mine) if _matches(e, terms)]
            found = search(project, SearchFilter(terms), limit=100)
            assert [str(hit.request.request_id) for hit in found.hits] == expected, query
            assert not found.more


@settings(max_examples=examples(5, 10), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_search__every_three_characters_of_a_text__are_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """The text after the three characters may be ASCII, other characters, or empty."""
    mixed = st.lists(st.one_of([st.text(alphabet, max_size=5) for alphabet in _ALPHABETS]), max_size=12).map("".join)
    text, project = data.draw(mixed), uuid.uuid4()
    entry = make_entry(**chat("", text), project_id=str(project))
    store(tmp_path_factory.mktemp("spool"), entry, make_entry(**chat("", ""), project_id=str(project)))
    stored = completion_text(entry.response).decode()
    threes = {_plain(stored)[start : start + 3] for start in range(len(_plain(stored)) - 2)}

    for three in sorted(three for three in threes if "\x00" not in three):
        found = search(project, SearchFilter([three]), limit=10)
        assert [str(hit.request.request_id) for hit in found.hits] == [entry.record.request_id], ascii(three)


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_search__fragments_of_written_texts__find_what_plain_python_finds(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Fragments are cut anywhere: within words, across them, at signs and at letters of any script."""
    project = uuid.uuid4()
    rows = [json.loads(line) for line in OWN_TEXTS.read_text(encoding="utf-8").splitlines()]
    contents = [
        message["content"] for row in rows for message in row["messages"] if isinstance(message["content"], str)
    ]
    texts = [*data.draw(st.lists(st.sampled_from(contents), min_size=20, max_size=40)), *_WRITTEN]
    mine = [make_entry(**chat(text, text[::-1]), project_id=str(project)) for text in texts]
    store(tmp_path_factory.mktemp("spool"), *mine)

    for text in data.draw(st.lists(st.sampled_from(texts), min_size=25, max_size=25)):
        start = data.draw(st.integers(0, max(0, len(text) - 2)))
        fragment = text[start : start + data.draw(st.integers(2, 30))].replace('"', "")
        if not fragment.strip():
            continue
        expected = [e.record.request_id for e in reversed(mine) if _matches(e, [fragment])]
        found = search(project, SearchFilter([fragment]), limit=100)
        assert [str(hit.request.request_id) for hit in found.hits] == expected, ascii(fragment)


def test_search__marked_places__hold_the_terms(tmp_path: Path) -> None:
    project = uuid.uuid4()
    long = "Lorem ipsum dolor. " * 40
    store(tmp_path, make_entry(**chat(long + "The İstanbul report" + long, "istanbul"), project_id=str(project)))

    [hit] = search(project, SearchFilter(["ISTANBUL", "report"]), limit=1).hits

    assert "The İstanbul report" in hit.prompt.text
    assert hit.prompt.start > len(long) - 200
    assert hit.prompt.more
    assert (hit.completion.text, hit.completion.start, hit.completion.more) == ("istanbul", 0, False)


def test_search__many_characters__is_narrowed_by_some_of_them(tmp_path: Path) -> None:
    project = uuid.uuid4()
    phrase = "".join(chr(0x4E00 + index) for index in range(900))
    store(tmp_path, make_entry(**chat(phrase, ""), project_id=str(project)))

    def count(term: str) -> int:
        return len(search(project, SearchFilter([term]), limit=10).hits)

    assert count(phrase) == 1
    assert count(phrase[:-1] + "x") == 0
